"""What the documentation shows is what happens."""

import doctest
import pathlib
import subprocess
import sys

import pytest

import echoless
from echoless import _dedup, _lab

HERE = pathlib.Path(__file__).parent.parent


def test_docstrings():
    attempted = 0
    for module in [echoless, _dedup, _lab]:
        failed, count = doctest.testmod(module)
        assert failed == 0
        attempted += count
    # The bases of the filters have no names in the package.
    runner = doctest.DocTestRunner()
    for base in echoless.Filter.__mro__[1:-1]:
        for test in doctest.DocTestFinder().find(base, "base"):
            runner.run(test)
    assert runner.failures == 0 and runner.tries >= 9
    assert attempted + runner.tries >= 50


def test_readme():
    pytest.importorskip("polars")
    failed, attempted = doctest.testfile(str(HERE / "README.md"), module_relative=False)
    assert failed == 0 and attempted >= 15


@pytest.mark.parametrize(
    ("name", "package"), [("access_log", "numpy"), ("call_records", "polars")]
)
def test_examples(name, package, tmp_path):
    pytest.importorskip(package)
    script = HERE / "examples" / f"{name}.py"
    run = subprocess.run(
        [sys.executable, script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    print(run.stdout)
