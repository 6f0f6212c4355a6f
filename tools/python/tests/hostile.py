"""Random calls of everything that the package has, with objects that lie about themselves.

``python hostile.py CALLS SEED`` makes random calls, ``python hostile.py matrix`` one for each type,
lie and entry: an exception of any kind is fine, a panic of the library or a signal is not.
``test_hostile.py`` runs both.
"""

import datetime
import faulthandler
import itertools
import os
import pickle
import random
import sys
import tempfile
import threading

import numpy as np

import echoless
from echoless import ExactFilter, Filter, SharedFilter

try:
    import resource
except ImportError:
    resource = None
try:
    import pyarrow as pa
except ImportError:
    pa = None
try:
    import pandas as pd
except ImportError:
    pd = None
try:
    import polars as pl
except ImportError:
    pl = None


def ret(value):
    return lambda self, *args, **kwargs: value


def raises(self, *args, **kwargs):
    raise KeyError("a lie")


# What an object says about its length, its type, its memory or its items.
LENGTHS = [0, 1, 5, 1 << 20, 1 << 32, 10**13, 2**62, 2**63 - 1]
LIES = {
    "length": lambda r: {"__len__": ret(r.choice([*LENGTHS, -1, 2**70, "x", None]))},
    "hint": lambda r: {"__length_hint__": ret(r.choice([*LENGTHS, -1, "x"]))},
    "size": lambda r: {
        name: property(ret(r.choice(LENGTHS))) for name in ["size", "nbytes", "itemsize", "ndim"]
    },
    "shape": lambda r: {"shape": property(ret((r.choice(LENGTHS),)))},
    "dtype": lambda r: {"dtype": property(ret(np.dtype(r.choice(["u1", "u8", "S9", "O", "V0"]))))},
    "interface": lambda r: {
        "__array_interface__": property(ret({"data": (8, False), "shape": (9,), "typestr": "<u8"}))
    },
    "bytes": lambda r: {"tobytes": ret(b"x"), "tolist": ret(None), "astype": ret(7)},
    "flags": lambda r: {"flags": property(ret({"c_contiguous": True, "aligned": True}))},
    "items": lambda r: {"__getitem__": ret(r.choice([7, "x", None])), "__iter__": ret(iter("ab"))},
    "iterator": lambda r: {"__iter__": ret(r.choice([None, 7, iter(())]))},
    "raising": lambda r: {r.choice(["__len__", "__iter__", "__getitem__", "__index__"]): raises},
    "attributes": lambda r: {"__getattribute__": raises},
    "class": lambda r: {"__class__": property(ret(r.choice(CLASSES)))},
    "finalize": lambda r: {"__array_finalize__": raises},
    "arrow": lambda r: {
        r.choice(["__arrow_c_array__", "__arrow_c_stream__"]): r.choice(
            [None, 7, property(raises), raises, ret(None), ret((1, 2)), ret(()), exported(r)]
        )
    },
    "module": lambda r: {"__module__": r.choice([7, None, "pyarrow.lib"])},
    "nothing": lambda r: {},
}
CLASSES = [list, tuple, int, str, bytes, np.ndarray, np.ma.MaskedArray, range, dict]
if pa:
    CLASSES += [pa.Array, pa.ChunkedArray, pa.Table, pa.RecordBatch, pa.RecordBatchReader]
if pd:
    CLASSES += [pd.Series, pd.DataFrame, pd.Index]
if pl:
    CLASSES += [pl.Series, pl.DataFrame]


def lying(r, base):
    """A class that is like another one, with one lie or two."""
    body = {}
    for name in r.sample(sorted(LIES), r.choice([1, 1, 2])):
        body.update(LIES[name](r))
    return type("Lying", (base,), body)


def exported(r):
    """Capsules of real data: used up, of other names, and of other shapes than their schema."""
    if pa is None:
        return ret((1, 2))
    one, two = pa.array([1, 2, 3]), pa.array(["a", "b", "c"])
    batch = pa.record_batch({"a": one})
    capsules = one.__arrow_c_array__()
    stream = pa.chunked_array([one]).__arrow_c_stream__()
    return ret(
        r.choice(
            [
                capsules,
                capsules[::-1],
                (capsules[0], two.__arrow_c_array__()[1]),
                (two.__arrow_c_array__()[0], capsules[1]),
                (batch.__arrow_c_array__()[0], capsules[1]),
                (one.dictionary_encode().__arrow_c_array__()[0], capsules[1]),
                capsules[0],
                stream,
                (stream, stream),
            ]
        )
    )


# Arrays that other threads resize, and give other memory.
MOVING = [np.arange(50_000).astype(dtype) for dtype in ["u8", "i4", "S12", "M8[s]"]]


def move(stop):
    r = random.Random(1)
    while not stop.is_set():
        array = r.choice(MOVING)
        length = r.choice([0, 1, 5, 5000, 50_000, 300_000])
        try:
            # One that has got other memory cannot be resized any more.
            if array is not MOVING[1]:
                array.resize(length, refcheck=False)
            else:
                array.__setstate__((1, (length,), array.dtype, False, bytes(length * array.itemsize)))
        except ValueError:
            pass
        stop.wait(0.0005)


def numpy_array(r):
    length = r.choice([0, 1, 3, 100, 5000])
    dtype = r.choice(
        "u1 i1 u2 i2 u4 i4 u8 i8 f8 ? S0 S1 S7 V0 V5 U3 O M8[s] M8[D] M8[7W] m8[ns] M8 >u8 c16".split()
        + [[("a", "u8"), ("b", "S3")], [("a", "O")]]
    )
    array = np.zeros(length, dtype)
    kind = r.randrange(12)
    if kind == 0:
        return array.reshape(r.choice([(-1, 1), (1, -1)]))
    if kind == 1:
        return np.broadcast_to(array[:1], r.choice([(0,), (1000,), (10**13,), (2**62 // 100,)]))
    if kind == 2:
        return array[:: r.choice([1, 2, -1, -3])]
    if kind == 3:
        return np.ma.MaskedArray(array, mask=r.choice([True, False, np.ma.nomask]))
    if kind == 4:
        masked = np.ma.MaskedArray(array, mask=False)
        masked._mask = r.choice([None, 7, np.zeros(3, "?"), np.zeros(length, "u8"), "x"])
        return masked
    if kind == 5:
        return np.frombuffer(bytes(8 * length + 8), "u8", offset=8 * (length > 0))
    if kind == 6:
        return np.frombuffer(bytes(80), "u1")[r.randrange(8) :][:64].view("u8")
    if kind == 7:
        return np.zeros(r.choice([10**13, 2**60]), "V0")
    if kind == 8:
        return np.array(r.choice([5, "x", b"y"]))
    if kind == 9:
        return r.choice(MOVING)
    if kind == 10:
        return np.array([object() if r.random() < 0.1 else "x" for _ in range(length)], "O")
    return array


def staying(array):
    """An array for other packages, which would read memory that was freed."""
    return np.zeros(7, array.dtype) if any(array is moving for moving in MOVING) else array


def numpy_lying(r):
    return staying(numpy_array(r)).view(lying(r, r.choice([np.ndarray, np.ndarray, np.ma.MaskedArray])))


ARROW_TYPES = (
    "int8 uint8 int16 int32 int64 uint64 date32 date64 string large_string binary large_binary "
    "string_view binary_view float64 bool_ null"
).split()


def arrow_array(r):
    """An array whose buffers are changed once it is made: offsets, views, indices, bitmaps."""
    length = r.choice([0, 1, 3, 20, 100])
    name = r.choice([*ARROW_TYPES, "dictionary", "struct", "fixed", "nothing"])
    text = [r.choice(["", "a", "a text that a view does not hold"]) for _ in range(length)]
    if name == "dictionary":
        keys = pa.array([r.choice([0, 1, 2, 99, -7]) for _ in text], r.choice([pa.int8(), pa.int64()]))
        values = pa.array(r.choice([["x", "y"], [None, "x"], [1, 2], []]))
        return pa.DictionaryArray.from_arrays(keys, values, safe=False)
    if name == "struct":
        children = [scrambled(r, pa.array(text)), scrambled(r, pa.array(range(length)))]
        return pa.StructArray.from_arrays(children, ["a", "b"])
    if name == "fixed":
        return scrambled(r, pa.array([b"12345"] * length, pa.binary(5)))
    if name == "nothing":
        return pa.Array.from_buffers(pa.binary(0), 10**13, [None, pa.py_buffer(b"")])
    if name == "null":
        return pa.nulls(r.choice([3, 10**13]))
    dtype = getattr(pa, name)()
    if pa.types.is_integer(dtype) or "date" in name:
        return scrambled(r, pa.array([n % 100 for n in range(length)]).cast(pa.int32()).cast(dtype)
                         if "date" not in name else pa.array([0] * length, dtype))
    if name in ("float64", "bool_"):
        return pa.array([0] * length, pa.int8()).cast(dtype)
    values = text if "string" in name else [value.encode() for value in text]
    return scrambled(r, pa.array(values, dtype))


def scrambled(r, array):
    """The array in buffers that Python owns, in which some bytes change afterwards."""
    buffers = [None if b is None else np.frombuffer(b, "u1").copy() for b in array.buffers()]
    wrapped = [None if b is None else pa.py_buffer(b) for b in buffers]
    if r.random() < 0.2:
        wrapped[0] = pa.py_buffer(b"\xff" * 50)
    try:
        array = pa.Array.from_buffers(
            array.type, len(array), wrapped, null_count=r.choice([-1, -1, 0, 1]), offset=0
        )
    except (ValueError, OverflowError):
        return array
    for _ in range(r.choice([0, 0, 1, 3])):
        buffer = r.choice([b for b in buffers if b is not None and len(b)] or [np.zeros(1, "u1")])
        buffer[r.randrange(len(buffer))] = r.choice([0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)])
    return array


def arrow(r):
    array = arrow_array(r)
    kind = r.randrange(9)
    if kind == 0:
        return pa.chunked_array([array, array]) if len(array) < 1000 else array
    if kind == 1:
        return pa.table({"a": array, "b": array})
    if kind == 2:
        return pa.record_batch({"a": array})
    if kind == 3:
        batch = pa.record_batch({"a": array})
        batches = itertools.chain([batch], map(lambda _: 1 // r.choice([0, 1]), [1]))
        return pa.RecordBatchReader.from_batches(batch.schema, batches)
    if kind == 4:
        return array.slice(r.randrange(len(array) + 1) if len(array) < 1000 else 0)
    if kind == 5 and pd:
        return pd.Series(pd.arrays.ArrowExtensionArray(array))
    if kind == 6:
        return lying(r, object)()
    return array


class Moves:
    """A number that changes the list, or the array, that is read."""

    def __init__(self, what):
        self.what = what

    def __index__(self):
        if isinstance(self.what, list):
            self.what.clear()
        else:
            self.what.resize(0, refcheck=False)
        return 5


def python_object(r):
    kind = r.randrange(16)
    if kind == 0:
        return range(r.choice([3, 10**13, 2**62, 2**70]))
    if kind == 1:
        return lying(r, r.choice([list, tuple]))([1, "a", b"b"])
    if kind == 2:
        moved = [1, 2, 3]
        moved += [Moves(moved), 5]
        return moved
    if kind == 3:
        array = np.zeros(3, "u8")
        return [1, Moves(array), 2]
    if kind == 4:
        return lying(r, int)(r.choice([0, -1, 2**64, 2**200]))
    if kind == 5:
        return lying(r, r.choice([str, bytes, bytearray]))()
    if kind == 6:
        return r.choice(["\ud800", "\0", "a\nb\x1b[1m", 1.5, None, True, object(), 2**64, -(2**63) - 1])
    if kind == 7:
        return [r.choice(["\ud800", 1.5, None, (None,), (), ("a", [1]), (1, ("a",)), {}])]
    if kind == 8:
        return iter([1, "a", object()] if r.random() < 0.5 else "abc")
    if kind == 9:
        return (n // r.choice([0, 1, 1]) for n in range(4))
    if kind == 10:
        return lying(r, r.choice([dict, set, frozenset]))()
    if kind == 11:
        return [numpy_object(r) for _ in range(r.randrange(4))]
    if kind == 12:
        return [lying(r, tuple)((1, "a")), lying(r, bytes)(b"x"), (bytearray(b"x"), None)]
    if kind == 13:
        return r.choice([memoryview(b"abc"), datetime.datetime.now(), datetime.timedelta(1), type, echoless])
    if kind == 14:
        return lying(r, object)()
    return lying(r, r.choice([list, tuple]))(numpy_object(r) for _ in range(2))


def numpy_object(r):
    return numpy_array(r) if r.random() < 0.5 else numpy_lying(r)


def pandas_object(r):
    array = staying(numpy_array(r))
    if array.ndim != 1 or len(array) > 10**6 or array.dtype.kind == "V":
        array = np.arange(5)
    kind = r.randrange(7)
    try:
        if kind == 0:
            return pd.Series(array)
        if kind == 1:
            return pd.DataFrame({"a": array, "b": array})
        if kind == 2:
            return pd.Series(["a", None, 7, 2**70, object()][: r.randrange(6)], dtype="O")
        if kind == 3:
            return pd.Index(array)
        if kind == 4:
            return pd.DataFrame()
        if kind == 5:
            return pd.Series(array).astype("category")
        return lying(r, r.choice([pd.Series, pd.DataFrame]))([1, 2, 3])
    except Exception:
        return pd.Series([1, 2])


def polars_object(r):
    return r.choice(
        [
            lambda: pl.Series([object(), object()], dtype=pl.Object),
            lambda: pl.DataFrame({"a": [1, None], "b": ["x", "y"]}),
            lambda: pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)}),
            lambda: pl.DataFrame(),
            lambda: pl.Series(["a", None], dtype=pl.Categorical),
            lambda: pl.Series([[1], [2]]),
            lambda: pl.Series([{"a": 1}, {"a": None}]),
            lambda: pl.Series([1.5]),
            lambda: pl.Series([1, -(2**63)], dtype=pl.Datetime("us")),
            lambda: pl.LazyFrame({"a": [1]}),
        ]
    )()


FORMS = [python_object, numpy_array, numpy_lying]
if pa:
    FORMS += [arrow, arrow]
if pd and pa:
    FORMS.append(pandas_object)
if pl and pa:
    FORMS.append(polars_object)


def anything(r):
    return r.choice(FORMS)(r)


def option(r):
    return r.choice(
        [
            anything,
            lambda r: r.choice([0, 1, -1, 2**63, 2**64, 2**200, float("nan"), 1e-320, float("inf")]),
            lambda r: r.choice(["", "\0", "\ud800", "1MiB", "10m", "s", "999999999999999999d", "x" * 9999]),
            lambda r: r.choice([None, True, b"", b"0" * 16, bytes(10**6)]),
            lambda r: datetime.timedelta(r.choice([-1, 0, 999999999])),
        ]
    )(r)


class Path:
    def __init__(self, value):
        self.value = value

    def __fspath__(self):
        return self.value


def path(r, folder):
    inside = os.path.join(folder, r.choice(["a", "b", "none/c", "\ud800", "\udc80", "x" * 300]))
    return r.choice([inside, inside, inside, inside.encode("utf-8", "surrogateescape")
                     if "\ud800" not in inside else b"\xff", Path(inside), Path(7),
                     folder, "", "\0", 7, None])


def options(r, names):
    return {name: option(r) for name in names if r.random() < 0.2}


FILTER_OPTIONS = ["memory", "fpr", "window", "refresh", "tick", "seed", "secret"]


def new_filter(r):
    return Filter(memory="64KiB", window=r.choice([None, 10, "1h"]))


def new_shared(r):
    layout = r.choice(["row4x16:", "bloom:k=4,", "stamped:window=100,"])
    return SharedFilter(f"{layout}memory=64KiB")


def new_exact(r):
    return ExactFilter(memory=r.choice([64, "64KiB"]))


def calls(r, state):
    """One random call."""
    filter, shared, folder = state["filter"], state["shared"], state["folder"]
    either = r.choice([filter, shared, state["exact"]])
    return r.choice(
        [
            lambda: either.observe(anything(r)),
            lambda: either.observe(anything(r)),
            lambda: either.contains(anything(r)),
            lambda: either.contains([anything(r), anything(r)]),
            lambda: filter.observe(anything(r), times=anything(r)),
            lambda: filter.observe([1, 2, 3], times=anything(r)),
            lambda: filter.observe(r.choice(MOVING), times=r.choice(MOVING[:2])),
            lambda: either.observe([r.choice(MOVING), r.choice(MOVING)]),
            lambda: either.observe_one(anything(r)),
            lambda: filter.observe_one(1, time=option(r)),
            lambda: filter.observe_one((1, anything(r))),
            lambda: filter.advance_to(option(r)),
            lambda: Filter(**options(r, ["spec", *FILTER_OPTIONS])),
            lambda: Filter(memory="64KiB", **options(r, FILTER_OPTIONS[1:])),
            lambda: SharedFilter(**options(r, ["spec", "memory", "seed", "secret"])),
            lambda: ExactFilter(**options(r, ["spec", "memory", "seed", "secret"])),
            lambda: ExactFilter.load(path(r, folder), **options(r, ["seed", "secret", "memory_limit"])),
            lambda: either.save(path(r, folder), r.choice([None, b"x", anything(r)])),
            lambda: Filter.load(path(r, folder), **options(r, ["seed", "secret", "tick", "memory_limit"])),
            lambda: SharedFilter.load(path(r, folder), **options(r, ["seed", "secret", "memory_limit"])),
            lambda: pickle.loads(pickle.dumps(filter)).observe(anything(r)),
            lambda: Filter._restore(option(r), option(r), option(r)),
            lambda: Filter._restore(broken(r, filter), 0, None),
            # No arrays: Python iterates here, and what lies in them is read by their own package.
            lambda: list(itertools.islice(echoless.dedup(python_object(r)), 5000)),
            lambda: list(echoless.dedup([1, 2], key=ret(anything(r)))),
            lambda: list(echoless.dedup([anything(r), 1], batch=r.choice([1, 2, option(r)]))),
            lambda: echoless.evaluate(["bloom:k=2,memory=1KiB"], anything(r)),
            lambda: echoless.evaluate(python_object(r), "uniform:records=100,distinct=0.5"),
            lambda: echoless.plan(anything(r), "1KiB", budget=0, max_fpr=0.1, max_fnr=0.1),
            lambda: echoless.plan("uniform:records=100,distinct=0.5", option(r), budget=0),
            lambda: either.report(),
            lambda: either.clear(),
            lambda: repr(either) + either.spec + str(either.data),
            lambda: new_filter(r).__exit__(anything(r), anything(r), anything(r)),
        ]
    )


def broken(r, filter):
    state = bytearray(filter.__reduce__()[1][0])
    for _ in range(3):
        state[r.randrange(len(state))] ^= 1 << r.randrange(8)
    return bytes(state)


# Types, and how an object of each is made of a class that is like it.
BASES = {
    object: lambda lying: lying(),
    list: lambda lying: lying([1, "a"]),
    tuple: lambda lying: lying((1, "a")),
    dict: lambda lying: lying({1: 2}),
    set: lambda lying: lying({1, 2}),
    int: lambda lying: lying(7),
    float: lambda lying: lying(7),
    str: lambda lying: lying("a"),
    bytes: lambda lying: lying(b"a"),
    bytearray: lambda lying: lying(b"a"),
    np.ndarray: lambda lying: np.arange(5).view(lying),
    np.ma.MaskedArray: lambda lying: np.ma.array([1, 2], mask=[0, 1]).view(lying),
    np.recarray: lambda lying: np.zeros(3, "u8,S3").view(lying),
}
if pd:
    BASES[pd.Series] = lambda lying: lying([1, 2])
    BASES[pd.DataFrame] = lambda lying: lying({"a": [1, 2], "b": ["x", None]})
if pl:
    BASES[pl.Series] = lambda lying: lying([1, 2])
    BASES[pl.DataFrame] = lambda lying: lying({"a": [1, 2], "b": ["x", None]})

ENTRIES = {
    "observe": lambda f, s, it: f.observe(it),
    "contains": lambda f, s, it: f.contains(it),
    "shared observe": lambda f, s, it: s.observe(it),
    "shared contains": lambda f, s, it: s.contains(it),
    "observe_one": lambda f, s, it: f.observe_one(it),
    "shared observe_one": lambda f, s, it: s.observe_one(it),
    "one of many": lambda f, s, it: f.observe([it, 1]),
    "a field": lambda f, s, it: f.observe([(1, it)]),
    "a column": lambda f, s, it: f.observe([it, np.arange(5)]),
    "the second column": lambda f, s, it: f.observe([np.arange(5), it]),
    "times": lambda f, s, it: f.observe([1, 2], times=it),
    "time": lambda f, s, it: f.observe_one(1, time=it),
    "advance_to": lambda f, s, it: f.advance_to(it),
    "dedup key": lambda f, s, it: list(echoless.dedup([1, 2], key=lambda _: it)),
    "dedup time": lambda f, s, it: list(echoless.dedup([1], window=5, time=lambda _: it)),
    "dedup filter": lambda f, s, it: list(echoless.dedup([1], filter=it)),
    "evaluate": lambda f, s, it: echoless.evaluate(["bloom:k=2,memory=1KiB"], it),
    "plan": lambda f, s, it: echoless.plan(it, "1KiB", budget=0, max_fpr=0.1, max_fnr=0.1),
    "plan memory": lambda f, s, it: echoless.plan([1, 2], it, budget=0),
    "spec": lambda f, s, it: Filter(it),
    "memory": lambda f, s, it: Filter(memory=it),
    "window": lambda f, s, it: Filter(memory="64KiB", window=it),
    "fpr": lambda f, s, it: Filter(memory="64KiB", fpr=it),
    "tick": lambda f, s, it: Filter(memory="64KiB", tick=it),
    "seed": lambda f, s, it: Filter(memory="64KiB", seed=it),
    "secret": lambda f, s, it: Filter(memory="64KiB", secret=it),
    "shared spec": lambda f, s, it: SharedFilter(it),
    "save": lambda f, s, it: f.save(os.devnull + "/none", it),
    "shared save": lambda f, s, it: s.save(it),
    "load": lambda f, s, it: Filter.load(os.devnull, seed=it),
    "restore": lambda f, s, it: Filter._restore(it, 0, None),
}


def matrix():
    """Every type, with every lie, into every entry."""
    faulthandler.enable()
    count = 0
    filter, shared = Filter(memory="64KiB", window=10), SharedFilter(memory="64KiB")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for base, lie, entry in itertools.product(BASES, LIES, ENTRIES):
            r = random.Random(count)
            count += 1
            try:
                it = BASES[base](type("Lying", (base,), LIES[lie](r)))
                ENTRIES[entry](filter, shared, it)
            except Exception:
                pass
            except BaseException:
                print(f"{entry} of {base} that lies about {lie}", flush=True)
                raise
        os.chdir("/")
    print(f"{count} calls, none with a signal")


def main(count, seed):
    faulthandler.enable()
    if resource:
        # What asks for more gets a MemoryError, and the machine stays as it is.
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
    r = random.Random(seed)
    stop = threading.Event()
    mover = threading.Thread(target=move, args=(stop,), daemon=True)
    mover.start()
    done = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        state = {
            "filter": new_filter(r),
            "shared": new_shared(r),
            "exact": new_exact(r),
            "folder": folder,
        }
        for number in range(count):
            if number % 500 == 499:
                state["filter"], state["shared"] = new_filter(r), new_shared(r)
                state["exact"] = new_exact(r)
            if os.environ.get("ECHOLESS_HOSTILE_TRACE"):
                print(number, file=sys.stderr, flush=True)
            try:
                calls(r, state)()
                done += 1
            except Exception:
                failed += 1
            except BaseException as error:
                print(f"call {number} of seed {seed}: {type(error)}: {error}", flush=True)
                raise
        # The filters are as good as any.
        for filter in [new_filter(r), state["filter"], state["shared"], state["exact"]]:
            filter.observe(["the last key"])
            assert filter.contains("the last key")
    stop.set()
    mover.join()
    print(f"{count} calls: {done} ended, {failed} with an exception, none with a signal")


if __name__ == "__main__":
    if sys.argv[1] == "matrix":
        matrix()
    else:
        main(int(sys.argv[1]), int(sys.argv[2]))
