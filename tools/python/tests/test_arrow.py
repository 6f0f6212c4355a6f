"""Arrow data of other packages, each skipped where the package is absent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoless import Filter, SharedFilter


def new(**options):
    return Filter(memory="1MiB", fpr=1e-12, **options)


@pytest.fixture(scope="module")
def pa():
    return pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def pl():
    return pytest.importorskip("polars")


TEXTS = ["a", "", "a longer text than a view holds", "b", "a"]
VERDICTS = [False, False, False, False, True]


def test_strings_and_binary_of_all_types(pa):
    types = ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"]
    for name in types:
        values = TEXTS if "string" in name else [text.encode() for text in TEXTS]
        array = pa.array(values, getattr(pa, name)())
        for filter in [new(), SharedFilter(memory="1MiB")]:
            verdicts = filter.observe(array)
            assert isinstance(verdicts, pa.BooleanArray)
            assert verdicts.to_pylist() == VERDICTS, name
            assert all(filter.contains(TEXTS))
        # A slice has an offset.
        filter = new()
        assert filter.observe(array[3:]).to_pylist() == [False, False]
        assert filter.contains(TEXTS).tolist() == [True, False, False, True, True]
        assert filter.observe(array[:0]).to_pylist() == []


def test_fixed_width_and_numbers(pa):
    keys = [b"0" * 16, b"1" * 16, b"0" * 16]
    filter = new()
    assert filter.observe(pa.array(keys, pa.binary(16))[1:]).to_pylist() == [False, False]
    assert all(filter.contains(keys))
    for name in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]:
        filter = new()
        array = pa.array([0, 1, 2, 1], getattr(pa, name)())[1:]
        assert filter.observe(array).to_pylist() == [False, False, True]
        assert filter.contains([1, 2, 0]).tolist() == [True, True, False]
        assert filter.observe(array[:0]).to_pylist() == []
        assert filter.observe(pa.array([], array.type)).to_pylist() == []
    assert filter.observe(pa.array([], pa.binary(16))).to_pylist() == []


def test_dictionaries_are_their_values(pa):
    array = pa.array(TEXTS).dictionary_encode()
    filter = new()
    assert filter.observe(array).to_pylist() == VERDICTS
    assert filter.contains(array[3:]).to_pylist() == [True, True]
    assert all(filter.contains(TEXTS))
    assert filter.observe(pa.array([1, 2, 1]).dictionary_encode()).to_pylist() == VERDICTS[2:]
    assert filter.contains([1, 2]).all()
    # A null is one of the rows, or of the values.
    of_values = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    for nulls in [pa.array(["a", None]).dictionary_encode(), of_values]:
        with pytest.raises(ValueError, match="invalid keys=null at row 1"):
            filter.observe(nulls)
        assert new().observe([nulls]).to_pylist() == [False, False]
    nothing = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string()))
    filter.observe([nothing])
    assert filter.contains([pa.array([None], pa.string())]).to_pylist() == [True]


def test_tables_and_columns_are_fields(pa):
    table = pa.table({"a": [1, 2, 1, None], "b": ["x", "y", "x", None]})
    filter = new()
    assert filter.observe(table).to_pylist() == [False, False, True, False]
    assert filter.contains([(1, "x"), (2, b"y"), (None, None)]).tolist() == [True] * 3
    # The same rows, cut otherwise.
    a = pa.chunked_array([[1], [2, 1], [None]], pa.int64())
    b = pa.chunked_array([["x", "y"], [], ["x", None]], pa.string())
    assert filter.contains([a, b]).to_pylist() == [True] * 4
    assert filter.contains(table.to_batches()[0]).to_pylist() == [True] * 4
    assert filter.contains(table.to_batches()[0].slice(1).to_struct_array()).to_pylist() == [True] * 3
    assert filter.observe([pa.array([None], pa.int64())]).to_pylist() == [False]


def test_many_chunks(pa):
    chunks = pa.chunked_array([list(range(n)) for n in range(200)], pa.int64())
    filter = new()
    verdicts = filter.observe(chunks).to_pylist()
    seen = set()
    for key, verdict in zip(chunks.to_pylist(), verdicts):
        assert verdict == (key in seen)
        seen.add(key)


@given(st.lists(st.lists(st.binary(max_size=15), max_size=40), min_size=1, max_size=5))
def test_views_are_bytes(chunks):
    pa = pytest.importorskip("pyarrow")
    keys = pa.chunked_array(chunks, pa.binary_view())
    by_view, by_list = new(), new()
    flat = [key for chunk in chunks for key in chunk]
    assert by_view.observe(keys).to_pylist() == by_list.observe(flat).tolist()


def test_nulls_and_types_that_are_no_keys(pa):
    filter = new()
    with pytest.raises(ValueError, match="invalid keys=null at row 2: expected no nulls"):
        filter.observe(pa.chunked_array([["a", "b"], [None]]))
    with pytest.raises(ValueError, match="null as a row at row 1"):
        filter.observe(pa.array([{"a": 1}, None]))
    for array in [pa.array([1.5]), pa.array([True]), pa.array([[1]])]:
        with pytest.raises(TypeError, match="invalid keys=Arrow"):
            filter.observe(array)
    with pytest.raises(ValueError, match="columns of 2 and 1 rows"):
        filter.observe([pa.array([1, 2]), pa.array([1])])
    with pytest.raises(TypeError, match="invalid column=list"):
        filter.observe([pa.array([1, 2]), [1, 2]])
    with pytest.raises(ValueError, match="struct without fields"):
        filter.observe(pa.array([{}, {}], pa.struct([])))
    assert filter.report()["observed"] == 0


def test_a_stream_that_fails(pa):
    def batches():
        yield pa.record_batch({"a": [1]})
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    filter = new()
    with pytest.raises(OSError, match="the disk is gone"):
        filter.observe(reader)
    assert filter.report()["observed"] == 0
    # What was read is gone.
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("a", pa.int64())]), iter([pa.record_batch({"a": [1, 1]})])
    )
    assert filter.observe(reader).to_pylist() == [False, True]


def test_an_export_that_is_none():
    class Wrong:
        def __arrow_c_array__(self, requested_schema=None):
            return (1, 2)

    class Raises:
        def __arrow_c_stream__(self, requested_schema=None):
            raise KeyError("no data")

    with pytest.raises(TypeError):
        new().observe(Wrong())
    with pytest.raises(KeyError, match="no data"):
        new().observe(Raises())


def test_times(pa):
    filter = new(window="10s")
    times = pa.array([0, 9_000_000, 60_000_000], pa.timestamp("us", "UTC"))
    assert filter.observe(pa.array(["a"] * 3), times=times).to_pylist() == [False, True, False]
    with pytest.raises(ValueError, match="expected no nulls"):
        filter.observe(["a"], times=pa.array([None], pa.timestamp("us")))
    with pytest.raises(TypeError, match="invalid times=bytes or strings"):
        filter.observe(["a"], times=pa.array(["12:00"]))


def test_polars(pl):
    filter = new()
    frame = pl.DataFrame({"a": TEXTS, "b": range(5)})
    verdicts = filter.observe(frame["a"])
    assert isinstance(verdicts, np.ndarray) and verdicts.tolist() == VERDICTS
    assert frame.filter(~verdicts).height == 4
    assert filter.observe(frame).tolist() == [False] * 5
    assert filter.contains([frame["a"], frame["b"]]).all()
    chunked = pl.concat([frame["a"], frame["a"]], rechunk=False)
    assert filter.observe(chunked).all()
    times = pl.Series([0, 1], dtype=pl.Datetime("us"))
    assert new(window="1s").observe(["a", "a"], times=times).tolist() == [False, True]
    assert not new().observe(pl.Series([1, 2], dtype=pl.Date)).any()
    assert filter.contains(pl.Series(TEXTS, dtype=pl.Categorical)).all()


def test_pandas(pa):
    pd = pytest.importorskip("pandas")
    filter = new()
    frame = pd.DataFrame({"a": TEXTS, "b": range(5)})
    assert filter.observe(frame["a"]).tolist() == VERDICTS
    assert filter.observe(frame).tolist() == [False] * 5
    assert filter.contains([("a", 0), ("a", 1)]).tolist() == [True, False]
    assert filter.contains(pd.Series(pd.Categorical(TEXTS))).all()


def test_duckdb(pa):
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql("select * from (values ('a', 1), ('b', 1), ('a', 1)) as calls(caller, start)")
    assert new().observe(rows).tolist() == [False, False, True]
