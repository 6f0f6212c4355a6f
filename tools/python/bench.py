"""What keys cost from Python, beside the library itself and a ``set``.

    pip install './tools/python[test]'
    cargo run --release --manifest-path tools/python/Cargo.toml --example key_rate > rate.txt
    python tools/python/bench.py rate.txt

Both programs use one thread and the fastest of 5 runs. Half of the keys are duplicates.
"""

import sys
import time
import tracemalloc

import numpy as np
import pyarrow as pa

import echoless

KEYS = 10_000_000
SOME = 1_000_000
RUNS = 5


def fastest(make, run):
    seconds = []
    for _ in range(RUNS):
        state = make()
        start = time.perf_counter()
        run(state)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def arrow_keys():
    ids = np.arange(KEYS, dtype="uint64") % np.uint64(KEYS // 2)
    words = np.empty((KEYS, 2), dtype="<u8")
    words[:, 0] = ids * np.uint64(0x9E37_79B9_7F4A_7C15)
    words[:, 1] = ids
    return pa.Array.from_buffers(pa.binary(16), KEYS, [None, pa.py_buffer(words)])


def small_filter():
    return echoless.Filter(memory="64MiB", fpr=1e-8)


def observe_half(keys):
    def run(filter):
        count = filter.observe(keys).to_numpy(zero_copy_only=False).sum()
        assert abs(count - KEYS / 2) < KEYS / 1000, count

    return run


def main():
    keys = arrow_keys()
    arrow = fastest(small_filter, observe_half(keys))
    print(f"Arrow column, 16 bytes    {arrow / KEYS * 1e9:7.1f} ns a key")
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            rust = float(file.read())
        print(f"the library in Rust       {rust / KEYS * 1e9:7.1f} ns a key")
        print(f"rate of Python to Rust    {rust / arrow:7.2f}   (target: at least 0.7)")

    # Objects, as a set needs them. All are fresh, and their hashes are not yet computed.
    def objects():
        return [b"call record %d" % number for number in range(SOME)]

    def add_each(state):
        keys, known = state
        add = known.add
        for key in keys:
            add(key)

    each = fastest(lambda: (objects(), set()), add_each) / SOME
    update = fastest(lambda: (objects(), set()), lambda state: state[1].update(state[0])) / SOME
    filtered = fastest(
        lambda: (objects(), echoless.Filter(memory="16MiB")), lambda it: it[1].observe(it[0])
    ) / SOME
    print(f"set.add in a loop         {each * 1e9:7.1f} ns a key")
    print(f"set.update(list)          {update * 1e9:7.1f} ns a key")
    print(f"Filter.observe(list)      {filtered * 1e9:7.1f} ns a key")
    print(f"set.add to Filter         {each / filtered:7.2f}   (target: at least 1)")

    # The set owns its table and the objects.
    tracemalloc.start()
    known = set(objects())
    of_set = tracemalloc.get_traced_memory()[0]
    assert len(known) == SOME
    tracemalloc.stop()
    print(f"memory of the set         {of_set / SOME:7.1f} bytes a key, exact")
    for name, spec in FILTERS:
        bytes_per_key = smallest(spec, SOME) / SOME
        ratio = of_set / SOME / bytes_per_key
        print(f"{name:26}{bytes_per_key:7.1f} bytes a key, 1/{ratio:.1f} of the set")
    print("                          (target: at most 1/20)")


# False positive rates. Each filter has the memory in which it misses 1 duplicate in 1000 that is as
# old as the set has keys, on a stream without end.
FILTERS = [
    ("1e-8", "fingerprint:fpr=1e-8"),
    ("1e-8, dense", "fingerprint:fpr=1e-8,dense=true"),
    ("1e-3", "fingerprint:fpr=1e-3"),
    ("1e-3, dense", "fingerprint:fpr=1e-3,dense=true"),
]


def smallest(spec, keys):
    for size in range(1_000_000, 16_000_000, 100_000):
        with echoless.Filter(f"{spec},memory={size // 4096 * 4096}") as filter:
            report = filter.report()
            if report["miss_age"] >= keys:
                return report["memory_bytes"]
    raise SystemExit(f"{spec} has no room for {keys} keys in 16 MB")


if __name__ == "__main__":
    main()
