"""Keys in every form: verdicts of a set, and equal keys in equal forms."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoless
from echoless import Filter, SharedFilter


def exact(keys):
    """The verdicts of a set."""
    seen = set()
    verdicts = []
    for key in keys:
        verdicts.append(key in seen)
        seen.add(key)
    return verdicts


def new(**options):
    return Filter(memory="1MiB", fpr=1e-12, **options)


fields = st.one_of(st.none(), st.binary(max_size=5), st.integers(-(2**63), 2**64 - 1))
keys = st.one_of(
    st.binary(max_size=20),
    st.integers(-(2**63), 2**64 - 1),
    st.tuples(fields, fields),
)


@given(st.lists(keys, max_size=300), st.integers(0, 300))
def test_verdicts_are_those_of_a_set(keys, cut):
    for filter in [new(), SharedFilter(memory="1MiB")]:
        first = filter.observe(keys[:cut]).tolist()
        assert first + filter.observe(keys[cut:]).tolist() == exact(keys)
        assert filter.contains(keys).tolist() == [True] * len(keys)
    one = new()
    assert [one.observe_one(key) for key in keys] == exact(keys)


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=8), max_size=100))
def test_a_text_is_its_utf8(texts):
    filter = new()
    assert filter.observe(texts).tolist() == exact(texts)
    assert all(filter.contains([text.encode() for text in texts]))


@given(st.lists(st.integers(0, 20), max_size=300))
def test_numbers_are_equal_in_every_type(numbers):
    for dtype in ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]:
        filter = new()
        assert filter.observe(np.array(numbers, dtype)).tolist() == exact(numbers)
        assert all(filter.contains(numbers))


def test_negative_numbers_are_equal_in_every_type():
    for dtype in ["i1", "i2", "i4", "i8"]:
        filter = new()
        filter.observe(np.array([-1, -7], dtype))
        assert filter.contains([-1, -7, 2**64 - 1, 255]).tolist() == [True, True, False, False]


def test_bytes_of_fixed_width_are_read_as_numpy_reads_them():
    values = [b"a", b"abc", b"a", b"", b"ab\0c"]
    filter = new()
    assert filter.observe(np.array(values, "S4")).tolist() == exact(values)
    assert all(filter.contains(values))
    whole = np.array(values, "S4").view("V4")
    filter = new()
    filter.observe(whole)
    assert filter.contains([b"a\0\0\0", b"a"]).tolist() == [True, False]


def test_arrays_with_gaps_and_of_other_alignment():
    numbers = np.arange(1000, dtype="u8")
    filter = new()
    assert not filter.observe(numbers[::3]).any()
    assert filter.contains(range(1000)).tolist() == [n % 3 == 0 for n in range(1000)]
    records = np.zeros(10, dtype=[("kind", "u1"), ("id", "u8")])
    records["id"] = range(10)
    assert filter.contains(records["id"]).tolist() == [n % 3 == 0 for n in range(10)]
    assert filter.contains(numbers[::-3]).sum() == 334


def test_text_and_object_arrays():
    for dtype in ["U", "O", np.dtypes.StringDType()]:
        filter = new()
        assert filter.observe(np.array(["a", "b", "a"], dtype)).tolist() == [False, False, True]
        assert filter.observe("b")


def test_a_series_of_tuples_has_their_fields():
    for rows in [[(1, 2), (1, 3), (1, 2)], [("x", "a"), ("x", "b"), ("x", "a")]]:
        assert new().observe(pd.Series(rows)).tolist() == [False, False, True]


def test_columns_are_fields():
    filter = new()
    columns = [np.array([1, 1, 2]), np.array([b"x", b"x", b"x"])]
    assert filter.observe(columns).tolist() == [False, True, False]
    assert filter.observe_one((2, b"x"))
    assert not filter.observe_one((b"x", 2))


def test_iterables_of_all_kinds():
    filter = new()
    assert filter.observe(iter("abca")).tolist() == [False, False, False, True]
    assert filter.observe({"a": 1, "d": 2}).tolist() == [True, False]
    assert filter.observe([]).tolist() == []
    assert filter.observe(np.array([], "u8")).dtype == bool


def test_a_batch_of_more_than_one_block():
    numbers = np.arange(2_500_000, dtype="u8")
    with Filter(memory="64MiB") as filter:
        assert filter.observe(numbers).sum() <= 1
        assert filter.contains(numbers).mean() > 0.999
        times = np.arange(2_500_000)
    with Filter(memory="64MiB", window=10_000) as filter:
        verdicts = filter.observe(numbers % 5000, times=times)
        assert verdicts.sum() == 2_495_000


def test_windows():
    filter = new(window=10)
    assert filter.observe(["a", "a", "a"], times=[0, 10, 40]).tolist() == [False, True, False]
    assert filter.observe("a", times=41)
    filter.advance_to(100)
    assert not filter.observe_one("a")
    assert filter.observe_one("a", 5)
    times = np.array([1, 2], "M8[h]")
    for window in ["1h", datetime.timedelta(hours=1)]:
        for tick in [None, "s", "us"]:
            filter = new(window=window, tick=tick)
            assert filter.tick == (tick or "ms")
            assert filter.observe(["a", "a"], times=times).tolist() == [False, True]
            assert not filter.observe(["a"], times=np.array([20 * 3600], "M8[s]"))[0]


@pytest.mark.parametrize("tick", ["ns", "us", "ms", "s"])
def test_times_of_any_unit_are_whole_ticks(tick):
    ticks_of_second = {"ns": 10**9, "us": 10**6, "ms": 10**3, "s": 1}[tick]
    for unit in ["ns", "7us", "400us", "1500us", "ms", "3s", "m", "W"]:
        for value in [0, 1, 333, 1001]:
            times = np.array([value], f"M8[{unit}]")
            passed = int(times.astype("M8[ns]").astype("int64")[0]) * ticks_of_second // 10**9
            filter = Filter("stamped:window=1,memory=1KiB", tick=tick)
            filter.observe(["a"], times=times)
            assert filter.observe_one("a", passed + 1), (unit, value)
            assert not filter.observe_one("a", passed + 3), (unit, value)


def test_seeds_and_secrets_change_the_hashes():
    plain, seeded, secret = new(), new(seed=7), new(secret=b"0123456789abcdef")
    for filter in [plain, seeded, secret]:
        assert filter.observe(["a", ("a", None), 1, "a"]).tolist() == [False] * 3 + [True]
    assert repr(secret).endswith(', secret=...)') and "0123" not in repr(secret)
    assert "seed=7" in repr(seeded)


def test_options_and_specifications():
    filter = Filter("bloom:k=4,memory=1MiB")
    assert (filter.spec, Filter(filter.spec).spec) == ("bloom:k=4,memory=1MiB",) * 2
    assert "refresh=false" in new(window=5, refresh=False).spec
    assert Filter(memory=1 << 20).report()["memory_bytes"] == 1 << 20
    filter = new()
    filter.observe(["a", "b", "a"])
    report = filter.report()
    assert (report["observed"], report["fresh"], report["window_ticks"]) == (3, 2, None)
    filter.clear()
    assert filter.report()["observed"] == 0
    shared = SharedFilter("bloom:k=4,memory=1MiB")
    assert shared.spec == "bloom:k=4,memory=1MiB" and "SharedFilter" in repr(shared)
    shared.observe("a")
    assert shared.report()["fresh"] == 1
    shared.clear()
    assert not shared.observe_one("a")


def test_a_plan_and_a_measurement_of_recorded_keys():
    keys = np.arange(20_000) % 8000
    result = echoless.evaluate(["bloom:k=4,memory=64KiB"], keys, ages=True)
    assert result["records"] == 20_000
    assert result["filters"][0]["score"]["duplicates"] == 12_000
    result = echoless.plan(keys, "64KiB", max_fpr=0.01, max_fnr=0.01, budget=1)
    assert result["recommended"] == result["candidates"][0]["name"]
    with pytest.raises(ValueError, match="missing memory|memory"):
        echoless.plan(keys)
