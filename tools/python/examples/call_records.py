# %% [markdown]
# Parquet files of call records, one a day, in which records come twice: in one file, and again in
# the file of the next day. Each day is a run of its own that goes on with the state of the day
# before. Run it as a script with a folder, or cell by cell.

# %%
import pathlib
import sys
import tempfile
import threading

import numpy as np
import polars as pl

import echoless

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
state = folder / "calls.state"
DAYS, CALLS = 3, 50_000

# %% The files of the exchanges: 10 % of the records twice, and 5 % of those of the day before.
random = np.random.default_rng(1)
before = None
for day in range(DAYS):
    numbers = np.arange(CALLS) + day * CALLS
    calls = pl.DataFrame(
        {
            "caller": [f"+4930{number % 7919:05}" for number in numbers],
            "start": numbers * 1_000 + 17,
            "seconds": numbers % 600,
        }
    ).with_columns(pl.from_epoch("start", "ms"))
    parts = [calls, calls.sample(CALLS // 10, seed=day)]
    if before is not None:
        parts.append(before.sample(CALLS // 20, seed=day))
    pl.concat(parts).sample(fraction=1, shuffle=True, seed=day).write_parquet(
        folder / f"calls-{day}.parquet"
    )
    before = calls


# %% A day: the file is scanned in batches, and the result is written while it is read.
def deduplicate(day):
    if state.exists():
        filter = echoless.Filter.load(state)
        if filter.data.decode() != f"day {day - 1}":
            raise SystemExit(f"the state is that after {filter.data.decode()}")
    else:
        filter = echoless.Filter(memory="8MiB", fpr=1e-9)

    # Polars may call it from several threads at once. Which of two equal records comes first does
    # not matter here; where it does, read the batches in order and call the filter from one thread.
    one_at_a_time = threading.Lock()

    def fresh(batch):
        with one_at_a_time:
            return batch.filter(~filter.observe(batch.select("caller", "start")))

    output = folder / f"unique-{day}.parquet"
    (
        pl.scan_parquet(folder / f"calls-{day}.parquet")
        .map_batches(fresh, streamable=True)
        .sink_parquet(output)
    )
    # After the output: a run that fails is repeated from the state of the day before.
    filter.save(state, f"day {day}".encode())
    return filter.report(), output


for day in range(DAYS):
    report, output = deduplicate(day)
    rows = pl.scan_parquet(output).select(pl.len()).collect().item()
    print(f"day {day}: {rows} unique records, {report['fresh']} since the first day")
    assert rows == CALLS

# %% Exact, for comparison: every record once.
unique = pl.concat([pl.read_parquet(folder / f"unique-{day}.parquet") for day in range(DAYS)])
assert unique.height == DAYS * CALLS
assert unique.select("caller", "start").is_unique().all()
print(f"{unique.height} records, each once")
