"""Saved states, pickles, and what is wrong with them."""

import copy
import multiprocessing
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoless import Filter, SharedFilter


def new(**options):
    return Filter(memory="64KiB", fpr=1e-12, **options)


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(0, 60))
def test_a_pickle_goes_on_as_if_nothing_had_happened(keys, cut):
    whole, parts = new(seed=3, window=20), new(seed=3, window=20)
    expected = whole.observe(keys, times=list(range(len(keys)))).tolist()
    verdicts = parts.observe(keys[:cut], times=list(range(len(keys)))[:cut]).tolist()
    parts = copy.deepcopy(pickle.loads(pickle.dumps(parts)))
    verdicts += parts.observe(keys[cut:], times=list(range(len(keys)))[cut:]).tolist()
    assert verdicts == expected
    assert parts.report() == whole.report()


def test_a_state_with_bytes_of_the_caller(tmp_path):
    path = tmp_path / "calls.state"
    filter = new(seed=7, window="1h")
    filter.observe(["a", "b"], times=5)
    filter.save(path, b"line 2")
    loaded = Filter.load(path, seed=7, tick="ms")
    assert (loaded.data, loaded.tick, loaded.spec) == (b"line 2", "ms", filter.spec)
    assert loaded.observe(["a", "c"]).tolist() == [True, False]
    loaded.save(str(path))
    assert Filter.load(path, seed=7).data == b""


def test_a_state_of_a_shared_filter(tmp_path):
    path = tmp_path / "shared.state"
    filter = SharedFilter("row2x32:memory=64KiB", seed=7)
    filter.observe(["a", "b"])
    filter.save(path, b"line 2")
    loaded = SharedFilter.load(path, seed=7)
    assert (loaded.data, loaded.spec, loaded.report()) == (b"line 2", filter.spec, filter.report())
    assert loaded.observe(["a", "c"]).tolist() == [True, False]
    with pytest.raises(ValueError, match="shared filter: expected a filter in lines"):
        Filter.load(path, seed=7)
    for options in [{"seed": 8}, {"seed": 7, "memory_limit": 1000}]:
        with pytest.raises(ValueError):
            SharedFilter.load(path, **options)
    with pytest.raises(FileNotFoundError):
        SharedFilter.load(tmp_path / "none")


def test_a_shared_filter_is_used_while_it_is_saved(tmp_path):
    filter = SharedFilter("bloom:k=4,memory=4MiB")
    before = [f"before {number}" for number in range(1000)]
    filter.observe(before)
    path, failed, done = tmp_path / "shared.state", [], threading.Event()

    def run(call):
        try:
            call()
        except BaseException as error:
            failed.append(error)

    def save():
        for _ in range(20):
            filter.save(path, b"line 1000")
            loaded = SharedFilter.load(path)
            assert loaded.data == b"line 1000" and loaded.contains(before).all()
        done.set()

    def use():
        number = 0
        while not done.is_set() and not failed:
            number += 1
            filter.observe_one(number % 5000)
            filter.observe([number % 5000, "a"])
            filter.contains("a")

    threads = [threading.Thread(target=run, args=(call,)) for call in [save, use, use]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_states_that_do_not_fit(tmp_path):
    path = tmp_path / "calls.state"
    with pytest.raises(FileNotFoundError, match="calls.state"):
        Filter.load(path)
    with pytest.raises(OSError):
        Filter.load(tmp_path)
    filter = new(seed=7)
    filter.observe("a")
    filter.save(path)
    for options in [{}, {"seed": 8}, {"secret": b"0123456789abcdef"}]:
        with pytest.raises(ValueError):
            Filter.load(path, **options)
    with pytest.raises(ValueError, match="memory"):
        Filter.load(path, seed=7, memory_limit=1000)
    whole = path.read_bytes()
    for damaged in [b"", b"no state", whole[:-1], whole[:100], whole[:50] + b"x" + whole[51:]]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError):
            Filter.load(path, seed=7)
    # The filter goes on, and a failed save leaves the file.
    path.write_bytes(whole)
    with pytest.raises(OSError):
        filter.save(tmp_path / "no folder" / "calls.state")
    assert filter.observe("a")
    assert Filter.load(path, seed=7).observe("a")


def test_filters_that_cannot_be_saved(tmp_path):
    with pytest.raises(RuntimeError, match="cannot save"):
        Filter("bloom:k=2,memory=1KiB").save(tmp_path / "state")
    with pytest.raises(RuntimeError, match="cannot save"):
        pickle.dumps(Filter("bloom:k=2,memory=1KiB"))
    secret = new(secret=b"0123456789abcdef")
    secret.observe("a")
    with pytest.raises(TypeError, match="a filter with a secret cannot be pickled"):
        pickle.dumps(secret)
    secret.save(tmp_path / "state")
    assert Filter.load(tmp_path / "state", secret=b"0123456789abcdef").observe("a")


def _observe(filter, key):
    return filter.observe(key)


def test_a_filter_in_another_process():
    filter = new()
    filter.observe("a")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(_observe, [(filter, "a"), (filter, "b")]) == [True, False]
