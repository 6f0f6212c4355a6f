"""Filters without errors, against a set: of one line, they would be wrong about most keys."""

import os
import random

import numpy as np
import pyarrow as pa
import pytest

from echoless import ExactFilter, dedup

SPEC = "fingerprint:memory=64"


def keys_in_each_form(numbers):
    """The same keys in one form of each way to read them, and what a set compares."""
    texts = [f"call {number}" for number in numbers]
    yield texts, texts
    yield iter([text.encode() for text in texts]), texts
    yield np.array(texts, dtype="S"), texts
    yield pa.array(texts), texts
    yield pa.chunked_array([pa.array(texts[:7], pa.string()), pa.array(texts[7:], pa.string())]), texts


def test_verdicts_are_those_of_a_set_that_was_saved(tmp_path):
    folder = tmp_path / "keys of calls"
    generator = random.Random(1)
    exact, seen, saved = ExactFilter(SPEC, seed=3), set(), None
    for step in range(40):
        numbers = [generator.randrange(2000) for _ in range(generator.randrange(1, 300))]
        keys, texts = list(keys_in_each_form(numbers))[step % 5]
        expected = []
        for text in texts:
            expected.append(text in seen)
            seen.add(text)
        assert exact.observe(keys).tolist() == expected, step
        assert exact.contains(texts).tolist() == [True] * len(texts)
        assert exact.report()["fresh"] == len(seen)
        if step % 4 == 1:
            exact.save(folder, bytes([step]))
            saved = set(seen)
        elif step % 4 == 3:
            # What was observed since is gone.
            with pytest.raises(RuntimeError, match="in use"):
                ExactFilter.load(folder, seed=3)
            exact.close()
            exact = ExactFilter.load(folder, seed=3)
            assert exact.data == bytes([step - 2])
            seen = set(saved)
    with pytest.raises(RuntimeError, match="never saved"):
        exact.clear()
    exact.close()
    with pytest.raises(ValueError):
        ExactFilter.load(folder, seed=4)
    with pytest.raises(ValueError):
        ExactFilter.load(folder, seed=3, memory_limit=63)


def test_numbers_rows_and_single_keys_are_compared():
    exact = ExactFilter(SPEC)
    for kind, keys in enumerate(
        [
            list(range(-200, 200)),
            np.arange(1000, 1400),
            [("a", number) for number in range(400)],
            [np.arange(400), pa.array(["b"] * 400)],
            pa.table({"x": range(400), "y": pa.nulls(400, pa.string())}),
            np.arange(400).astype("M8[s]"),
        ]
    ):
        assert not np.array(exact.observe(keys)).any(), kind
        assert np.array(exact.observe(keys)).all(), kind
    # In another form, they are the same.
    assert exact.observe(np.arange(-200, 200)).all()
    assert exact.observe_one(("a", 7)) and not exact.observe_one(("a", 400))
    assert exact.observe(-5) and not exact.observe("-5") and exact.observe(b"-5")


def test_a_stream_without_errors():
    numbers = [number * number % 997 for number in range(5000)]
    assert list(dedup(numbers, filter=ExactFilter(SPEC))) == list(dict.fromkeys(numbers))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_leaves_the_folder_alone(tmp_path):
    exact = ExactFilter(SPEC)
    exact.observe(["a"])
    exact.save(tmp_path / "calls")
    child = os.fork()
    if child == 0:
        try:
            exact.observe(["b"])
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert exact.observe(["a", "b"]).tolist() == [True, False]
    exact.save(tmp_path / "calls")
    exact.close()
    assert ExactFilter.load(tmp_path / "calls").observe(["a", "b"]).tolist() == [True, True]


def test_what_is_wrong_is_an_error(tmp_path):
    exact = ExactFilter(memory="64KiB")
    assert "memory=64KiB" in exact.spec and repr(exact).startswith("ExactFilter(")
    assert exact.observe(["a", "b", "a"], times=[1, 2, 3]).tolist() == [False, False, True]
    for call, error, words in [
        (lambda: ExactFilter(), ValueError, "invalid spec"),
        (lambda: ExactFilter("clocked:window=60,memory=1MiB"), ValueError, "without a window"),
        (lambda: ExactFilter.load(tmp_path / "none"), FileNotFoundError, "none"),
        (lambda: ExactFilter.load(tmp_path), FileNotFoundError, "filter"),
        (lambda: exact.observe([1.5]), TypeError, "float"),
        (lambda: exact.observe(["c", None]), TypeError, "None"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert os.listdir(tmp_path) == []
    (tmp_path / "notes").write_text("")
    with pytest.raises(ValueError, match="a new folder"):
        exact.save(tmp_path)
    # Nothing of a list with a wrong key was recorded.
    assert exact.contains(["a", "b", "c"]).tolist() == [True, True, False]
    exact.clear()
    assert exact.contains("a") is False
