"""The table of the README: which keys are equal, in every form that has them."""

import datetime

import numpy as np
import pytest

from echoless import Filter, dedup

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def new(**options):
    return Filter(memory="1MiB", fpr=1e-12, **options)


def number_forms(value):
    """A number in every form that can have it: names and keys."""
    yield "list", [value]
    yield "iterator", iter([value])
    yield "object array", np.array([value], "O")
    yield "object series", pd.Series([value], dtype="O")
    for bits in [8, 16, 32, 64]:
        for sign, least, end in [
            ("int", -(2 ** (bits - 1)), 2 ** (bits - 1)),
            ("uint", 0, 2**bits),
        ]:
            if not least <= value < end:
                continue
            name = f"{sign}{bits}"
            yield f"numpy {name}", np.array([value], name)
            yield f"numpy scalar {name}", [np.dtype(name).type(value)]
            yield f"numpy with gaps {name}", np.array([value, 1, 1], name)[::3]
            yield f"masked {name}", np.ma.array([value], dtype=name, mask=[False])
            yield f"pandas {name}", pd.Series([value], dtype=name)
            yield f"pandas index {name}", pd.Index([value], dtype=name)
            yield f"pandas nullable {name}", pd.Series([value], dtype=name.replace("i", "I", 1)
                                                       .replace("uI", "UI"))
            yield f"pandas Arrow {name}", pd.Series([value], dtype=f"{name}[pyarrow]")
            array = pa.array([value], getattr(pa, name)())
            yield f"Arrow {name}", array
            yield f"Arrow chunks {name}", pa.chunked_array([array])
            yield f"Arrow dictionary {name}", array.dictionary_encode()
            dtype = getattr(pl, name.replace("i", "I", 1).replace("uI", "UI"))
            yield f"polars {name}", pl.Series([value], dtype=dtype)


NUMBERS = [0, 1, 7, 255, 2**31, 2**63 - 1, 2**63, 2**64 - 1, -1, -7, -128, -(2**31), -(2**63)]


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_are_equal_by_value(value):
    filter = new()
    assert not filter.observe_one(value)
    for name, keys in number_forms(value):
        assert list(filter.contains(keys)) in ([True], [pa.scalar(True)]), name
    # And no other one is. The same as fields.
    fields = new()
    assert not fields.observe_one((value, "x"))
    text = pa.array(["x"])
    for other in NUMBERS:
        assert filter.contains([other]).tolist() == [other == value]
        assert fields.contains([(other, "x")])[0] == (other == value)
        for name, keys in number_forms(other):
            # Every form where it is equal, and those of 64 bits where it is not.
            if isinstance(keys, (list, pd.Index)) or not hasattr(keys, "__len__"):
                continue
            if other == value or "64" in name:
                (found,) = np.asarray(filter.contains(keys))
                assert found == (other == value), (name, other)
                (found,) = np.asarray(fields.contains([keys, text]))
                assert found == (other == value), (name, other)


def text_forms(value):
    data = value.encode()
    yield "str", [value]
    yield "bytes", [data]
    yield "bytearray", [bytearray(data)]
    yield "numpy U", np.array([value])
    yield "numpy S", np.array([data], f"S{len(data) + 3}")
    yield "numpy V", np.array([data], f"S{len(data)}").view(f"V{len(data)}")
    yield "numpy objects", np.array([value], "O")
    yield "pandas str", pd.Series([value])
    yield "pandas objects", pd.Series([value], dtype="O")
    yield "pandas category", pd.Series([value], dtype="category")
    yield "pandas Arrow", pd.Series([value], dtype=pd.ArrowDtype(pa.large_string()))
    for name in ["string", "large_string", "string_view"]:
        yield f"Arrow {name}", pa.array([value], getattr(pa, name)())
    for name in ["binary", "large_binary", "binary_view"]:
        yield f"Arrow {name}", pa.array([data], getattr(pa, name)())
    yield "Arrow fixed", pa.array([data], pa.binary(len(data)))
    yield "Arrow dictionary", pa.array([value]).dictionary_encode()
    yield "polars String", pl.Series([value])
    yield "polars Binary", pl.Series([data])
    yield "polars Categorical", pl.Series([value], dtype=pl.Categorical)
    yield "polars Enum", pl.Series([value], dtype=pl.Enum([value, "other"]))


@pytest.mark.parametrize("value", ["a", "call 17", "a text that a view does not hold", "Grüße"])
def test_texts_are_equal_to_their_bytes(value):
    for name, keys in text_forms(value):
        filter = new()
        assert not np.asarray(filter.observe(keys)).any(), name
        for other, again in text_forms(value):
            assert np.asarray(filter.contains(again)).all(), (name, other)
        assert not filter.contains(value + "x")
        # A number and its bytes, a tuple with a text of two.
        assert not filter.contains([len(value), ("a", "b")]).any()


EPOCH = datetime.datetime(1970, 1, 1)
INSTANTS = [EPOCH + datetime.timedelta(days=days) for days in [-1, 0, 7, 20_000]]


def time_forms(instant):
    """A midnight in every form that has it."""
    for unit in ["D", "h", "m", "s", "ms", "us", "ns", "12h", "100ns"]:
        yield f"numpy {unit}", np.array([instant], f"M8[{unit}]")
    for unit in ["s", "ms", "us", "ns"]:
        series = pd.Series(np.array([instant], f"M8[{unit}]"))
        yield f"pandas {unit}", series
        yield f"pandas index {unit}", pd.Index(series)
        yield f"pandas UTC {unit}", series.dt.tz_localize("UTC")
        yield f"Arrow {unit}", pa.array([instant], pa.timestamp(unit))
        yield f"Arrow UTC {unit}", pa.array([instant], pa.timestamp(unit, "UTC"))
        yield f"pandas Arrow {unit}", pd.Series(
            [instant], dtype=pd.ArrowDtype(pa.timestamp(unit))
        )
    for unit in ["ms", "us", "ns"]:
        yield f"polars {unit}", pl.Series([instant], dtype=pl.Datetime(unit))
    yield "Arrow date32", pa.array([instant.date()], pa.date32())
    yield "Arrow date64", pa.array([instant.date()], pa.date64())
    yield "polars Date", pl.Series([instant.date()])


@pytest.mark.parametrize("instant", INSTANTS)
def test_instants_are_equal_in_all_units(instant):
    filter, fields = new(), new()
    filter.observe(np.array([instant], "M8[s]"))
    fields.observe([np.array([instant], "M8[s]"), np.array([1])])
    for other in INSTANTS:
        for name, keys in time_forms(other):
            assert np.asarray(filter.contains(keys)).all() == (other == instant), name
            if not isinstance(keys, pd.Index):
                found = np.asarray(fields.contains([keys, np.array([1])])).all()
                assert found == (other == instant), name
    # They are no numbers, and no durations.
    seconds = (instant - EPOCH) // datetime.timedelta(seconds=1)
    numbers = [seconds * factor for factor in [1, 1000, 10**6, 10**9]] + [seconds // 86_400]
    assert not filter.contains(numbers).any()
    assert not filter.contains(np.array([seconds], "m8[s]")).any()
    assert not fields.contains([(number, 1) for number in numbers]).any()


def test_durations_and_times_of_day_are_equal_in_all_units():
    hours = [
        np.array([1], "m8[h]"),
        np.array([3600], "m8[s]"),
        np.array([3600 * 10**9], "m8[ns]"),
        pd.Series(pd.to_timedelta(["1h"])),
        *[pa.array([3600 * n], pa.duration(u)) for u, n in [("s", 1), ("ms", 1000), ("ns", 10**9)]],
        pl.Series([datetime.timedelta(hours=1)], dtype=pl.Duration("us")),
    ]
    one_o_clock = datetime.time(1)
    clocks = [
        pa.array([one_o_clock], pa.time32("s")),
        pa.array([one_o_clock], pa.time32("ms")),
        pa.array([one_o_clock], pa.time64("us")),
        pa.array([one_o_clock], pa.time64("ns")),
        pl.Series([one_o_clock]),
    ]
    for forms, others in [(hours, clocks), (clocks, hours)]:
        filter = new()
        filter.observe(forms[0])
        for keys in forms:
            assert np.asarray(filter.contains(keys)).all(), keys
        for keys in others + [[1], [3600], np.array([3600], "M8[s]")]:
            assert not np.asarray(filter.contains(keys)).any(), keys


def missing_forms():
    """The key 1, and one that is missing."""
    yield "masked", np.ma.array([1, 1], mask=[False, True])
    yield "masked time", np.ma.array(np.array([1, 1], "M8[s]"), mask=[False, True])
    yield "masked bytes", np.ma.array([b"1", b"1"], mask=[False, True])
    yield "NaT", np.array(["1970-01-02", "NaT"], "M8[s]")
    yield "no duration", np.array([1, "NaT"], "m8[s]")
    yield "pandas nullable", pd.Series([1, None], dtype="Int64")
    yield "pandas NaT", pd.Series(pd.to_datetime(["1970-01-02", None]))
    yield "pandas str", pd.Series(["1", None], dtype="str")
    yield "pandas objects", pd.Series(["1", None], dtype="O")
    yield "pandas category", pd.Series(["1", None], dtype="category")
    yield "Arrow", pa.array([1, None])
    yield "Arrow text", pa.array(["1", None])
    yield "Arrow view", pa.array(["1", None], pa.string_view())
    yield "Arrow dictionary", pa.array(["1", None]).dictionary_encode()
    yield "Arrow time", pa.array([1, None], pa.timestamp("s"))
    yield "polars", pl.Series([1, None])
    yield "polars text", pl.Series(["1", None])


def test_values_that_are_missing_are_no_keys_and_missing_fields():
    for name, keys in missing_forms():
        filter = new()
        with pytest.raises(ValueError, match="null at row 1"):
            filter.observe(keys)
        assert filter.report()["observed"] == 0, name
        columns = [keys, np.array([7, 7])]
        assert not np.asarray(filter.observe(columns)).any(), name
        assert filter.contains([(None, 7)]).tolist() == [True], name
        # All missing values are equal.
        again = new()
        again.observe_one((None, 7))
        assert np.asarray(again.observe(columns)).tolist() == [False, True], name
    missing = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT]
    assert new().observe([(value, 7) for value in missing]).tolist() == [False] + [True] * 4
    columns = [np.array(missing, object), np.array([7] * 5)]
    assert new().observe(columns).tolist() == [False] + [True] * 4


def test_columns_without_any_value_have_a_type_of_their_own():
    nothing = pd.Series([None, None], dtype=object)
    for column in [pa.nulls(2), pl.Series([None, None], dtype=pl.String), nothing]:
        assert np.asarray(new().observe([column, np.array([7, 7])])).tolist() == [False, True]
        with pytest.raises(ValueError, match="null at row 0"):
            new().observe(column)
    none = pd.DataFrame({"a": pd.Series(["x"], dtype=object), "b": [1]}).iloc[:0]
    for keys in [pa.array([]), pd.Series([], dtype=object), none, none["a"]]:
        assert len(new().observe(keys)) == 0
    with pytest.raises(TypeError, match="invalid keys=Arrow Null with a buffer: expected a type"):
        new().observe(pl.Series([None]))
    filter = new(window=5)
    assert len(filter.observe(pa.array([], pa.string()), times=pa.array([]))) == 0


def test_the_index_of_a_frame_is_no_field():
    frame = pd.DataFrame({"caller": ["+1", "+2", "+1", "+1"], "ok": [True, False, True, True]})
    calls = frame[["caller"]]
    forms = [
        calls[frame.ok],
        pd.concat([calls, calls]),
        calls.set_index(pd.Index(["a", "b", "c", "d"], name="name")),
        calls.set_index(pd.MultiIndex.from_product([[1, 2], [3, 4]])),
        calls.set_index(pd.to_datetime(["2026"] * 4)),
        calls.iloc[::-1],
        calls.iloc[:0],
    ]
    for form in forms:
        verdicts = new().observe(form)
        assert isinstance(verdicts, np.ndarray)
        assert verdicts.tolist() == form.duplicated().tolist(), form
        # As a series, as columns, and as the rows.
        assert new().observe(form["caller"]).tolist() == form.duplicated().tolist()
        assert new().observe([form["caller"]]).tolist() == form.duplicated().tolist()
        rows = list(form.itertuples(index=False, name=None))
        assert new().observe(rows).tolist() == form.duplicated().tolist()
    two = pd.DataFrame({"a": [1, 1, 2, 1], "b": ["x", "x", "x", "y"]}, index=[5, 6, 7, 5])
    assert new().observe(two).tolist() == two.duplicated().tolist()
    twice = pd.concat([two["a"], two["a"]], axis=1)
    assert new().observe(twice).tolist() == [False, True, False, True]
    with pytest.raises(ValueError, match="invalid keys=frame without columns"):
        new().observe(frame[[]])


def test_rows_are_equal_in_all_forms():
    rows = [(1, "x"), (1, "y"), (-1, "x"), (None, "x"), (1, None)]
    a, b = zip(*rows)
    table = pa.table({"a": pa.array(a, pa.int32()), "b": pa.array(b)})
    forms = {
        "tuples": rows,
        "table": table,
        "batch": table.to_batches()[0],
        "struct": table.to_struct_array(),
        "columns": [pa.array(a, pa.int64()), pa.array(b, pa.large_binary())],
        "polars": pl.DataFrame({"a": a, "b": b}),
        "pandas": pd.DataFrame({"a": pd.array(a, "Int16"), "b": b}, index=[3, 3, 1, 2, 3]),
        "objects": [np.array(a, "O"), np.array(b, "O")],
        "pandas objects": pd.DataFrame({"a": pd.Series(a, dtype="O"), "b": b}),
        "mixed": [np.ma.array([1, 1, -1, 0, 1], mask=[0, 0, 0, 1, 0]), pl.Series(b)],
    }
    for name, form in forms.items():
        filter = new()
        assert not np.asarray(filter.observe(form)).any(), name
        for other, again in forms.items():
            assert np.asarray(filter.contains(again)).all(), (name, other)


@pytest.mark.parametrize("align", [False, True])
def test_rows_of_structured_arrays_have_their_fields(align):
    rows = [(7, b"x", 9), (7, b"x", 9), (7, b"y", 9), (-7, b"x", 9)]
    dtype = np.dtype([("a", "i1"), ("b", "S3"), ("c", "u8")], align=align)
    array = np.frombuffer(bytes(range(100)) * dtype.itemsize, dtype)[:4].copy()
    for name, column in zip("abc", zip(*rows)):
        array[name] = column
    verdicts = new().observe(rows).tolist()
    for keys in [array, array[::-1][::-1], np.rec.array(array)]:
        assert new().observe(keys).tolist() == verdicts
    filter = new()
    filter.observe(rows)
    assert filter.contains(array).all()
    objects = array.astype([("a", "O"), ("b", "O"), ("c", "u8")])
    assert new().observe(objects).tolist() == verdicts
    for dtype in [[("a", "f8")], [("a", [("b", "i8")])]]:
        with pytest.raises(TypeError, match="invalid keys=array of"):
            new().observe(np.zeros(2, dtype))
    with pytest.raises(TypeError, match="invalid keys=array of"):
        new().observe([array, array])


def test_objects_that_are_not_their_values_are_no_keys():
    pointers = pl.Series("o", [object(), object()], dtype=pl.Object)
    keys = {
        "polars Object": pointers,
        "polars frame": pl.DataFrame({"o": pointers, "a": [1, 2]}),
        "period": pd.Series(pd.period_range("2026-01", periods=2, freq="M")),
        "interval": pd.Series(pd.interval_range(0, 2)),
        "floats": pd.Series([1.0, 2.0]),
        "bools": np.array([True]),
        "months": np.array(["2026-01"], "M8[M]"),
        "no unit": np.array(["NaT"], "M8"),
        "nothing": np.zeros(2, "V0"),
        "a masked number": iter([np.ma.array(5, mask=True)]),
        "an array": [(1, np.array(5))],
        "datetimes": [datetime.datetime(2026, 1, 1)],
        "structured masks": np.ma.array([(1, 2)], dtype="i4,i4", mask=[(0, 1)]),
        "Arrow of no width": pa.array([b""], pa.binary(0)),
        "Arrow structs": pa.array([{"a": {"b": 1}}]),
    }
    for name, form in keys.items():
        filter = new()
        with pytest.raises((TypeError, ValueError), match="^invalid "):
            filter.observe(form)
        assert filter.report()["observed"] == 0, name


def test_an_index_outside_of_the_dictionary_is_an_error():
    for indices in [[0, 99, 1], [0, 2, 1], [0, -7, 1]]:
        for dtype in [pa.int8(), pa.int32(), pa.int64()]:
            keys = pa.DictionaryArray.from_arrays(
                pa.array(indices, dtype), pa.array(["a", "b"]), safe=False
            )
            for form in [keys, [keys, np.arange(3)], pa.chunked_array([keys])]:
                filter = new()
                with pytest.raises(ValueError, match="invalid index=that of row 1: expected 0 to"):
                    filter.observe(form)
                assert filter.report()["observed"] == 0
    # That of a null is not read.
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 99, 1], "i1"))]
    indices = pa.Array.from_buffers(pa.int8(), 3, buffers)
    keys = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert new().observe([keys]).to_pylist() == [False, False, False]


def test_dedup_loses_no_item():
    arrays = [{"id": i, "digest": np.array([i, i + 1], "u8")} for i in range(10)]
    for key in [
        lambda item: item["digest"],
        lambda item: pa.array(item["digest"]),
        lambda item: pl.Series(item["digest"]),
        lambda item: pd.Series(item["digest"]),
        lambda item: [1, 2],
    ]:
        with pytest.raises(TypeError, match="invalid key="):
            list(dedup(arrays, key=key))
    found = [item["id"] for item in dedup(arrays + arrays, key=lambda item: bytes(item["digest"]))]
    assert found == list(range(10))
    assert list(dedup(iter([(1, None), (1, None), (1, 2)]))) == [(1, None), (1, 2)]
