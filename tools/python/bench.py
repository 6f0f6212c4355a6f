"""What keys cost from Python, beside the library itself and a ``set``.

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
        lambda: (objects(), echoless.Filter(memory="8MiB")), lambda it: it[1].observe(it[0])
    ) / SOME
    print(f"set.add in a loop         {each * 1e9:7.1f} ns a key")
    print(f"set.update(list)          {update * 1e9:7.1f} ns a key")
    print(f"Filter.observe(list)      {filtered * 1e9:7.1f} ns a key")
    print(f"set.add to Filter         {each / filtered:7.2f}   (target: at least 1)")

    # The set owns its table and the objects; the filter has room for the keys at 1e-8.
    tracemalloc.start()
    known = set(objects())
    of_set = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    for mebibytes in range(1, 64):
        filter = echoless.Filter(memory=mebibytes << 20, fpr=1e-8)
        report = filter.report()
        if report["miss_age"] >= len(known):
            break
    print(f"memory of the set         {of_set / SOME:7.1f} bytes a key")
    print(f"memory of the filter      {report['memory_bytes'] / SOME:7.1f} bytes a key, which misses")
    print("                          1 duplicate in 1000 of that age at a rate of 1e-8")
    print(f"set to filter             {of_set / report['memory_bytes']:7.2f}   (target: at least 20)")


if __name__ == "__main__":
    main()
