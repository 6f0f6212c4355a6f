from typing import Any

from . import ExactFilter as ExactFilter
from . import Filter as Filter
from . import OrderedFilter as OrderedFilter
from . import OrderedThread as OrderedThread
from . import SharedFilter as SharedFilter

__version__: str

def plan(
    stream: Any,
    memory: int | str | None,
    window: int | None,
    max_fpr: float | None,
    max_fnr: float | None,
    records: int | None,
    seed: int,
    budget: float,
    threads: int,
) -> str: ...
def evaluate(
    specs: list[str], stream: Any, seed: int, points: int, ages: bool, window: int | None
) -> str: ...
