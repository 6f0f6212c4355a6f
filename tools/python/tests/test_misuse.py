"""Wrong arguments, threads, signals, forks, and filters after errors."""

import os
import signal
import threading
from datetime import timedelta

import numpy as np
import pytest

import echoless
from echoless import Filter, SharedFilter


def new(**options):
    return Filter(memory="1MiB", **options)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Filter("bloom:k=0,memory=1MiB"), ValueError, "invalid k=0: expected 1 to 64"),
        (lambda: Filter("blom:memory=1MiB"), ValueError, "invalid filter=blom: expected"),
        (lambda: Filter(), ValueError, "missing memory"),
        (lambda: Filter(memory="lots"), ValueError, "invalid memory=lots"),
        (lambda: Filter(memory=-1), ValueError, "invalid memory=-1"),
        (lambda: Filter(memory=0), ValueError, "invalid memory"),
        (lambda: Filter(memory="1MiB", fpr=2.0), ValueError, "invalid fpr"),
        (lambda: Filter(memory="1MiB", fpr=float("nan")), ValueError, "invalid fpr"),
        (lambda: Filter(memory="1MiB", window="soon"), ValueError, "invalid window=soon"),
        (lambda: Filter(memory="1MiB", window=0), ValueError, "invalid window=0"),
        (lambda: Filter(memory="1MiB", window=-1), ValueError, "invalid window=-1"),
        (lambda: Filter(memory="1MiB", window=timedelta(-1)), ValueError, "invalid window=-1 day"),
        (lambda: Filter(memory="1MiB", window="1ms", tick="s"), ValueError, "whole ticks of 1 s"),
        (lambda: Filter(memory="1MiB", window=1.5), TypeError, "invalid window=1.5"),
        (lambda: Filter(memory="1MiB", tick="m"), ValueError, "invalid tick"),
        (lambda: Filter(memory="1MiB", secret=b"short"), ValueError, "invalid length of secret=5"),
        (lambda: Filter(memory="1MiB", secret=b"0" * 16, seed=1), ValueError, "invalid seed=1"),
        (lambda: Filter("bloom:k=2", memory="1MiB"), ValueError, "invalid spec"),
        (lambda: Filter("bloom:k=2,memory=8000T"), MemoryError, "cannot allocate"),
        (lambda: SharedFilter(), ValueError, "invalid spec"),
        (lambda: SharedFilter("lru:memory=1MiB"), ValueError, "invalid layout=lru"),
        (lambda: echoless.evaluate("bloom", "uniform:records=9,universe=9"), ValueError, "memory"),
        (lambda: echoless.evaluate([], "lines"), ValueError, "invalid"),
        (lambda: echoless.plan("lines", "1MiB"), ValueError, "invalid"),
        (lambda: echoless.plan([], "1MiB"), ValueError, "invalid|missing"),
        (lambda: echoless.plan([1], "1MiB", threads=0), ValueError, "invalid threads=0"),
        (lambda: echoless.plan([1], "1MiB", budget=-1), ValueError, "invalid budget=-1"),
    ],
)
def test_options_that_are_not_allowed(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    ("keys", "error", "text"),
    [
        (1.5, TypeError, "invalid keys=float"),
        (None, TypeError, "invalid keys=NoneType"),
        ([1.5], TypeError, "invalid key=float: expected bytes, str, int"),
        ([None], TypeError, "invalid key=NoneType"),
        ([["a"]], TypeError, "invalid key=list"),
        ([("a", 1.5)], TypeError, "invalid key=float"),
        ([2**64], ValueError, "invalid key=18446744073709551616"),
        ([-(2**63) - 1], ValueError, "invalid key=-9223372036854775809"),
        (["\ud800"], UnicodeEncodeError, "surrogates"),
        (np.array([1.5]), TypeError, "array of float64"),
        (np.array([True]), TypeError, "array of bool"),
        (np.array([1j]), TypeError, "array of complex128"),
        (np.array([1], ">u8"), TypeError, "array of >u8"),
        (np.zeros((2, 2), "u8"), ValueError, "array of 2 dimensions"),
        (np.array(7, "u8"), ValueError, "array of 0 dimensions"),
        (np.array([object()], "O"), TypeError, "invalid key=object"),
        ([np.array([1]), np.array([1, 2])], ValueError, "columns of 1 and 2 rows"),
        ([np.array([1]), 7], TypeError, "invalid column=int"),
    ],
)
def test_keys_that_are_none(keys, error, text):
    for filter in [new(), SharedFilter(memory="1MiB")]:
        for call in [filter.observe, filter.contains]:
            with pytest.raises(error, match=text):
                call(keys)
    assert new().report()["observed"] == 0


@pytest.mark.parametrize(
    ("times", "error", "text"),
    [
        ([1], ValueError, "invalid number of ticks=1: expected 2"),
        (-1, ValueError, "invalid time=-1"),
        ([1, -1], ValueError, "invalid time=-1"),
        ([1, 2**64], ValueError, "invalid time=18446744073709551616"),
        ([1, "a"], TypeError, "invalid time=str"),
        (1.5, TypeError, "invalid times=float"),
        (np.array([1, -1]), ValueError, "invalid times=-1 at row 1"),
        (np.array([1.0, 2.0]), TypeError, "array of float64"),
        (np.array(["2026-11-25", "NaT"], "M8[s]"), ValueError, "no NaT"),
        (np.array(["2026-11-25", "2026-11-26"], "M8[s]"), ValueError, "values with a unit"),
        (np.array([1, 2], "M8[Y]"), TypeError, "datetime64"),
    ],
)
def test_times_that_are_none(times, error, text):
    filter = new(window=10)
    with pytest.raises(error, match=text):
        filter.observe(["a", "b"], times=times)
    assert filter.report()["observed"] == 0


def test_times_of_too_many_ticks():
    with pytest.raises(ValueError, match=r"fewer than 2\^64 ticks"):
        new(window="1s", tick="ns").observe(["a"], times=np.array([2**60], "M8[s]"))


def test_an_exception_in_an_iterable_leaves_nothing():
    def keys():
        yield "a"
        raise KeyError("no more")

    filter = new()
    with pytest.raises(KeyError, match="no more"):
        filter.observe(keys())
    assert not filter.observe("a")


def test_an_iterable_that_uses_the_filter():
    filter = new()
    assert filter.observe(str(filter.observe(str(n))) for n in range(3)).tolist() == [
        False,
        True,
        True,
    ]


def test_a_closed_filter():
    with new() as filter:
        filter.observe("a")
    filter.close()
    calls = [
        lambda: filter.observe("a"),
        lambda: filter.contains(["a"]),
        lambda: filter.observe_one("a"),
        lambda: filter.report(),
        lambda: filter.clear(),
        lambda: filter.save("nowhere"),
        lambda: filter.advance_to(1),
        lambda: filter.__enter__(),
        lambda: filter.__reduce__(),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="the filter is closed"):
            call()
    assert "rowlru" in repr(filter) and "rowlru" in filter.spec


def test_two_threads_in_a_filter_are_an_error_or_take_turns():
    filter = Filter(memory="16MiB")
    numbers = np.arange(300_000, dtype="u8")
    results = []

    def run(part):
        for _ in range(20):
            try:
                results.append(filter.observe(numbers + np.uint64(part)).size)
            except RuntimeError as error:
                assert "another thread uses the filter" in str(error)
                results.append(0)

    threads = [threading.Thread(target=run, args=(part * 10**6,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert filter.report()["observed"] == sum(results) > 0


def test_one_thread_gets_each_fresh_key_of_a_shared_filter():
    filter = SharedFilter("bloom:k=4,memory=16MiB")
    numbers = np.arange(300_000, dtype="u8")
    fresh = []
    threads = [
        threading.Thread(target=lambda: fresh.append(~filter.observe(numbers))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = np.sum(fresh, axis=0)
    assert counts.max() == 1 and counts.mean() > 0.999


def test_ctrl_c_ends_a_long_call():
    numbers = np.zeros(30_000_000, dtype="u8")
    filter = Filter(memory="1MiB")
    main = threading.main_thread().ident

    def interrupt():
        # Until the call ends: how long the machine takes to start it is not known.
        while not done.wait(0.01):
            signal.pthread_kill(main, signal.SIGINT)

    raised = []

    def once(*_):
        # A second one could come while the first is handled.
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt

    done = threading.Event()
    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, once)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            filter.observe(numbers)
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    observed = filter.report()["observed"]
    assert observed % (1 << 20) == 0 and observed < 30_000_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_goes_on_with_copies():
    for filter in [new(), SharedFilter(memory="1MiB")]:
        filter.observe("before")
        child = os.fork()
        if child == 0:
            right = filter.observe("before") and not filter.observe("child")
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert filter.observe("before") and not filter.observe("child")


def test_huge_keys_and_batches():
    filter = new()
    huge = bytes(50_000_000)
    assert not filter.observe(huge) and filter.observe(huge)
    assert filter.observe([b""] * 100_000).sum() == 99_999
    wide = np.zeros(1_000_000, "S1000")
    assert filter.observe(wide).all()
