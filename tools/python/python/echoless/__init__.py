"""Duplicate detection on endless streams, at line rate and in fixed memory.

>>> import echoless
>>> filter = echoless.Filter(memory="64MiB")
>>> filter.observe(["call 17", "call 18", "call 17"]).tolist()
[False, False, True]
>>> list(echoless.dedup(["b", "a", "b", "c", "a"]))
['b', 'a', 'c']
"""

from ._command import dedup_file
from ._dedup import dedup
from ._echoless import (
    ExactFilter,
    Filter,
    OrderedFilter,
    OrderedThread,
    SharedFilter,
    __version__,
)
from ._lab import evaluate, plan

__all__ = [
    "ExactFilter",
    "Filter",
    "OrderedFilter",
    "OrderedThread",
    "SharedFilter",
    "__version__",
    "dedup",
    "dedup_file",
    "evaluate",
    "plan",
]
