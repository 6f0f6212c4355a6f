"""The generator and the command."""

import itertools
import os
import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoless
from echoless import Filter, dedup


@given(st.lists(st.integers(0, 30), max_size=100), st.integers(1, 20))
def test_first_occurrences_in_their_order(keys, batch):
    items = [(key, number) for number, key in enumerate(keys)]
    expected = []
    for item in items:
        if all(item[0] != other[0] for other in expected):
            expected.append(item)
    found = list(dedup(items, key=lambda item: item[0], memory="64KiB", batch=batch))
    assert found == expected


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 20), st.integers(1, 20))
def test_a_window_of_items(keys, window, batch):
    # A window has at most five units, and the one that a key came in may be partly over.
    unit = -(-window // 5)
    forgotten = (-(-window // unit) + 1) * unit
    last, expected = {}, []
    for number, key in enumerate(keys):
        if number - last.get(key, -1000) >= forgotten:
            expected.append(number)
        last[key] = number
    numbered = list(enumerate(keys))
    kwargs = {"memory": "64KiB", "window": window, "batch": batch}
    found = [item[0] for item in dedup(numbered, key=lambda item: item[1], **kwargs)]
    assert set(expected) <= set(found)
    for number in found:
        before = [n for n in range(number) if keys[n] == keys[number]]
        assert not before or number - before[-1] > window


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_an_exception_comes_after_the_items_before_it(batch):
    filter = Filter(memory="64KiB")
    items = dedup([1, 2, 1, 0, 5], key=lambda item: 10 // item, filter=filter, batch=batch)
    assert list(itertools.islice(items, 2)) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        next(items)
    assert filter.contains([10, 5, 2]).tolist() == [True, True, False]
    # A key that is none.
    items = dedup(["a", "b", 1.5, "c"], filter=filter, batch=batch)
    assert list(itertools.islice(items, 2)) == ["a", "b"]
    with pytest.raises(TypeError, match="invalid key=float"):
        next(items)
    assert not filter.contains("c")
    # A time that is none.
    filter = Filter(memory="64KiB", window=5)
    items = dedup([1, 2, -1], filter=filter, time=lambda item: item, batch=batch)
    assert list(itertools.islice(items, 2)) == [1, 2]
    with pytest.raises((ValueError, OverflowError)):
        next(items)


def test_a_batch_of_one_reads_nothing_ahead():
    read = []

    def source():
        for number in range(10):
            read.append(number)
            yield number

    items = dedup(source(), batch=1)
    assert (next(items), next(items)) == (0, 1)
    assert read == [0, 1]


def test_arguments_that_do_not_go_together():
    for kwargs in [
        {"batch": 0},
        {"window": "10m"},
        {"filter": Filter(memory=64), "fpr": 0.1},
        {"filter": Filter(memory=64, window=2)},
    ]:
        # At the call, and not at the first item.
        with pytest.raises(ValueError):
            dedup([], **kwargs)
    items = dedup("aab", window=2, time={"a": 1}.get)
    assert next(items) == "a"
    with pytest.raises(TypeError, match="time=None"):
        next(items)


def test_the_command_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not installed"):
        echoless.dedup_file("in", tmp_path / "out", command=tmp_path / "nothing")


@pytest.mark.skipif(os.name != "posix", reason="a script stands for the command")
def test_the_line_of_the_command(tmp_path):
    command = tmp_path / "echoless"
    command.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "stats = sys.argv[sys.argv.index('--stats') + 1]\n"
        "if 'fails' in sys.argv:\n"
        "    sys.exit('echoless: invalid --key=0: expected 1 or more')\n"
        "json.dump(sys.argv[1:], open(stats, 'w'))\n"
    )
    command.chmod(0o755)
    options = {"key": "1,2", "header": True, "quiet": False, "known": ["a", "b"], "memory": None}
    line = echoless.dedup_file(["-x", "y"], "out", command=command, **options)
    assert line[:3] == ["dedup", "--output", "out"]
    assert line[5:] == ["--key=1,2", "--header", "--known=a", "--known=b", "--", "-x", "y"]
    with pytest.raises(RuntimeError, match="^invalid --key=0: expected 1 or more$"):
        echoless.dedup_file("fails", "out", command=command)


def test_the_command(tmp_path):
    if shutil.which("echoless") is None:
        pytest.skip("the command echoless is not on PATH")
    (tmp_path / "in.csv").write_text("a,1\nb,2\na,3\n")
    stats = echoless.dedup_file(tmp_path / "in.csv", tmp_path / "out.csv", key="1", memory="1MiB")
    assert (tmp_path / "out.csv").read_text() == "a,1\nb,2\n"
    assert isinstance(stats, dict)
    with pytest.raises(RuntimeError, match="invalid"):
        echoless.dedup_file(tmp_path / "in.csv", tmp_path / "out.csv", memory="0")
