# %% [markdown]
# Which requests of an access log are repeats of one in the last ten minutes, and which repeats does
# a filter miss? Run it as a script with a folder for the figure, or cell by cell.

# %%
import pathlib
import sys
import tempfile

import numpy as np

import echoless

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# %% A log: lines of clients that ask for pages, some of them twice within minutes.
random = np.random.default_rng(1)
REQUESTS = 200_000
seconds = np.sort(random.integers(0, 24 * 3600, REQUESTS))
clients = random.zipf(1.3, REQUESTS) % 50_000
pages = random.zipf(1.2, REQUESTS) % 2_000
start = np.datetime64("2026-11-25T00:00:00")
log = folder / "access.log"
with log.open("w", encoding="utf-8") as file:
    for second, client, page in zip(seconds, clients, pages):
        address = f"10.{client >> 16}.{client >> 8 & 255}.{client & 255}"
        file.write(f'{address} - - [{start + second}] "GET /page/{page} HTTP/1.1" 200\n')

# %% One pass over the log, in batches: the key is the client and the page.
filter = echoless.Filter(memory="1MiB", window="10m")


def batches(lines, size=10_000):
    keys, times = [], []
    for line in lines:
        address, _, _, time, _, page, *_ = line.split()
        keys.append((address, page))
        times.append(time.strip("[]"))
        if len(keys) == size:
            yield keys, np.array(times, "M8[s]")
            keys, times = [], []
    yield keys, np.array(times, "M8[s]")


repeats = requests = 0
with log.open(encoding="utf-8") as lines:
    for keys, times in batches(lines):
        repeats += int(filter.observe(keys, times=times).sum())
        requests += len(keys)
report = filter.report()
print(f"{repeats} of {requests} requests are repeats within 10 minutes")
print(f"evicted before their time: {report['evictions']}, fill {report['fill']:.2f}")

# %% The exact answer, for comparison. The filter may remember a key up to a fifth longer.
last, within, longer = {}, 0, 0
for second, client, page in zip(seconds, clients, pages):
    age = second - last.get((client, page), -10**9)
    within += age <= 600
    longer += age <= 720
    last[client, page] = second
assert requests == REQUESTS
assert within <= repeats <= longer, (within, repeats, longer)

# %% What does less memory miss? The lab compares filters with an exact oracle, by age.
specs = ["rowlru:form=line,bits=32,memory=64KiB", "rowlru:form=line,bits=32,memory=256KiB"]
keys = clients.astype("uint64") * np.uint64(2_000) + pages.astype("uint64")
result = echoless.evaluate(specs, keys, ages=True)
for measured in result["filters"]:
    ages = measured["ages"]
    print(measured["name"])
    for age in ages:
        rate = age["missed"] / max(age["duplicates"], 1)
        print(f"  {age['from']:7} requests ago: {rate:6.1%} of {age['duplicates']} missed")
small, large = result["filters"]
assert small["fnr"] > large["fnr"]

# %% A plot, where matplotlib is installed.
try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    print("SKIPPED: the plot: matplotlib is not installed")
else:
    figure, axes = pyplot.subplots(layout="constrained")
    for measured in result["filters"]:
        ages = measured["ages"]
        rates = [age["missed"] / max(age["duplicates"], 1) for age in ages]
        axes.plot([age["from"] for age in ages], rates, marker="o", label=measured["name"])
    axes.set(xscale="log", xlabel="age in requests", ylabel="duplicates missed", ylim=(0, 1))
    axes.legend()
    figure.savefig(folder / "misses_by_age.png")
    print(folder / "misses_by_age.png")
