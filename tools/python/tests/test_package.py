"""What the package brings besides the module."""

from importlib import metadata

import pytest


@pytest.mark.parametrize("name", ["LICENSE-MIT", "LICENSE-APACHE"])
def test_the_wheel_has_the_licences(name: str) -> None:
    found = [file for file in metadata.files("echoless") or [] if file.name == name]
    assert len(found) == 1
    assert len(found[0].read_text()) > 1000
