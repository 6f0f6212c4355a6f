"""Objects that lie about themselves: every call ends, or raises an exception."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from echoless import Filter, SharedFilter

# Debug allocators find what is read or written outside of a block, or after it was freed.
ALLOCATORS = {
    "as it is": {},
    "debug": {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"},
}


def run_hostile(allocator, *arguments):
    run = subprocess.run(
        [sys.executable, Path(__file__).parent / "hostile.py", *arguments],
        env={**os.environ, **ALLOCATORS[allocator]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert run.returncode == 0, (run.stdout[-2000:], run.stderr[-4000:])
    print(run.stdout)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_random_calls_end_without_a_signal(allocator):
    calls = os.environ.get("ECHOLESS_HOSTILE_CALLS", "300")
    run_hostile(allocator, calls, os.environ.get("ECHOLESS_HOSTILE_SEED", "1"))


def test_every_type_with_every_lie_into_every_entry():
    run_hostile("debug", "matrix")


class Long:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter([1, 2, 1])


@pytest.mark.parametrize("length", [0, 1, 10**13, 2**62, 2**63 - 1])
def test_a_length_is_a_hint(length):
    for filter in [Filter(memory="64KiB"), SharedFilter(memory="64KiB")]:
        assert filter.observe(Long(length)).tolist() == [False, False, True]
        for none in [range(10**13), range(2**70), np.broadcast_to(np.uint64(1), 10**13)]:
            with pytest.raises((MemoryError, ValueError)):
                filter.observe(none)
    with pytest.raises((MemoryError, ValueError)):
        Filter(memory="64KiB", window=5).observe([1, 2], times=range(10**13))
    with pytest.raises(ValueError, match="invalid number of ticks=more than 2: expected 2"):
        Filter(memory="64KiB", window=5).observe([1, 2], times=[1, 2, 3])


LIES = {
    "__len__": lambda self: 1 << 32,
    "__array_interface__": property(lambda self: {"data": (8, False)}),
    "__getitem__": lambda self, index: 7,
    "dtype": property(lambda self: np.dtype("S100")),
    "shape": property(lambda self: (1 << 32,)),
    "ndim": property(lambda self: 0),
    "tobytes": lambda self: b"",
    "tolist": lambda self: [],
    "astype": lambda self, dtype: None,
    "flags": property(lambda self: None),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("base", [np.ndarray, np.ma.MaskedArray, np.memmap, np.recarray])
def test_a_subclass_of_an_array_is_its_values(lie, base):
    # Classes of numpy themselves cannot be made with all lies.
    class Lying(base):
        pass

    plain = np.arange(4, dtype="u8")
    array = plain.view(Lying)
    setattr(Lying, lie, LIES[lie])
    for call in [lambda f, keys: f.observe(keys), lambda f, keys: f.observe([keys, plain])]:
        filter = Filter(memory="64KiB")
        assert call(filter, array).tolist() == [False] * 4
        assert call(filter, plain).tolist() == [True] * 4


MOVES = {
    "resize": lambda array, length: array.resize(length, refcheck=False),
    "setstate": lambda array, length: array.__setstate__(
        (1, (length,), array.dtype, False, bytes(length * 8))
    ),
}


@pytest.mark.parametrize("how", MOVES)
def test_an_array_that_moves_during_the_call(how):
    array = np.arange(100_000, dtype="u8")
    stop = threading.Event()

    def move():
        while not stop.is_set():
            for length in [0, 1, 100_000, 1_000_000]:
                MOVES[how](array, length)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        filter = Filter(memory="64KiB")
        for _ in range(200):
            for keys in [array, [array, array]]:
                try:
                    filter.observe(keys)
                except ValueError as error:
                    assert str(error).startswith("invalid keys=")
    finally:
        stop.set()
        thread.join()
