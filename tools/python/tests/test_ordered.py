"""Threads of an ordered filter, whose verdicts are those of one."""

import threading

import pytest

from echoless import Filter, OrderedFilter, SharedFilter

SPEC = "fingerprint:fpr=1e-8,memory=1MiB"


def batch(number):
    return [f"call {number * 75 + index}" for index in range(150)]


def test_verdicts_are_those_of_one_filter():
    ordered, lock = OrderedFilter(SPEC, partitions=2), threading.Lock()
    numbers, found = iter(range(100)), {}

    def run():
        thread = ordered.thread()
        while True:
            with lock:
                number = next(numbers, None)
                if number is None:
                    return
                thread.take()
            found[number] = thread.observe(batch(number)).tolist()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one = Filter(SPEC)
    assert [found[number] for number in range(100)] == [
        one.observe(batch(number)).tolist() for number in range(100)
    ]
    assert one.report()["fresh"] == ordered.report()["fresh"]
    sizes = {made.memory_bytes for made in [one, ordered, SharedFilter(memory="1MiB")]}
    assert sizes == {1 << 20}
    assert ordered.spec == one.spec and "OrderedFilter" in repr(ordered)


def test_tickets_and_times():
    ordered = OrderedFilter("clocked:window=600,memory=1MiB", partitions=2, tick="s")
    one, two = ordered.thread(), ordered.thread()
    one.take()
    assert not two.wait(0.001)
    one.leave()
    assert two.wait(60)
    assert two.observe([7], times=[100]).tolist() == [False]
    assert one.observe(7, times=700) and not one.observe(7, times=2000)
    with pytest.raises(ValueError, match="number of ticks"):
        one.observe([1, 2], times=[1])
    with pytest.raises(ValueError, match="seconds"):
        one.wait(-1)
    for partitions in [0, 1 << 60]:
        with pytest.raises(ValueError):
            OrderedFilter(SPEC, partitions=partitions)


def test_a_state_is_of_one_point(tmp_path):
    ordered, path, called = OrderedFilter(SPEC, partitions=2, seed=7), tmp_path / "state", []
    thread = ordered.thread()
    thread.observe(["a", "b"])

    def position():
        called.append("position")
        with pytest.raises(RuntimeError, match="position uses the ordered filter"):
            thread.observe("c")
        return b"record 2"

    ordered.save(path, before=lambda: called.append("before") or True, position=position)
    assert called == ["before", "position"]
    with OrderedFilter.load(path, partitions=3, seed=7) as again:
        assert again.data == b"record 2"
        assert again.thread().observe(["a", "b", "c"]).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="closed"):
        again.report()
    assert Filter.load(path, seed=7).contains(["a", "c"]).tolist() == [True, False]

    def fail():
        raise KeyError("no position")

    for functions in [{"before": fail}, {"position": fail}, {"position": lambda: 7}]:
        with pytest.raises((KeyError, TypeError)):
            ordered.save(path, **functions)
    with pytest.raises(ValueError, match="beside a position"):
        ordered.save(path, b"record 2", position=fail)
    ordered.save(path, b"record 3")
    assert OrderedFilter.load(path, partitions=1, seed=7).data == b"record 3"
