"""The planner and the lab, as dicts."""

import json

from . import _echoless


def plan(
    stream,
    memory=None,
    *,
    window=None,
    max_fpr=None,
    max_fnr=None,
    records=None,
    seed=1,
    budget=10.0,
    threads=1,
):
    """Ranks the filters for a stream, as ``echoless plan`` does.

    ``stream`` is a description such as ``"uniform:records=1M,distinct=0.6"``, or a sample of keys
    in any form that ``Filter.observe`` takes; ``records`` is then the length of the whole stream.
    Without ``memory``, the smallest one that meets both bounds is found. ``budget`` is the nominal
    CPU time of simulations in seconds. The call ends by itself; Ctrl-C waits for it.

    The result has ``recommended``, a specification or None, and the best ``candidates`` of each
    kind, with rates, their bounds, and why they stand where they do.

    >>> from echoless import Filter, plan
    >>> result = plan("uniform:records=45k,distinct=0.6", "64KiB", max_fpr=0.01, max_fnr=0.01)
    >>> result["candidates"][0]["meets_bounds"]
    True
    >>> filter = Filter(result["recommended"])
    """
    return json.loads(
        _echoless.plan(
            stream, memory, window, max_fpr, max_fnr, records, seed, float(budget), threads
        )
    )


def evaluate(specs, stream, *, seed=1, points=1, ages=False, window=None):
    """Measures filters on a stream against an exact oracle, as ``echoless eval`` does.

    ``specs`` is a specification or a list of them, ``stream`` as in ``plan``. The result has a
    dict for each filter: ``fpr``, ``fnr``, ``score``, ``bits_per_key``, ``points``, and with
    ``ages=True`` the misses by age. The call ends by itself; Ctrl-C waits for it.

    >>> from echoless import evaluate
    >>> result = evaluate("bloom:k=2,memory=16KiB", "uniform:records=100k,distinct=0.6")
    >>> result["filters"][0]["fnr"]
    0.0
    """
    specs = [specs] if isinstance(specs, str) else list(specs)
    return json.loads(_echoless.evaluate(specs, stream, seed, points, ages, window))
