import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import (
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    final,
    overload,
    type_check_only,
)

import numpy as np
import numpy.typing as npt

__version__: str
__all__: list[str]

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

_Field: TypeAlias = bytes | bytearray | str | int
_Key: TypeAlias = _Field | tuple[_Field | None, ...]
_Column: TypeAlias = npt.NDArray[Any] | _ArrowArray | _ArrowStream
_Keys: TypeAlias = Iterable[_Key] | _Column | Sequence[_Column]
_Times: TypeAlias = int | Iterable[int] | _Column
_Tick: TypeAlias = Literal["ns", "us", "ms", "s"]
_Path: TypeAlias = str | os.PathLike[str]
_T = TypeVar("_T")
_F = TypeVar("_F", bound=_AnyFilter)

@type_check_only
class _AnyFilter:
    @property
    def memory_bytes(self) -> int: ...
    def report(self) -> dict[str, int | float | None]: ...
    @property
    def spec(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    def save(self, path: _Path, data: bytes | None = None) -> None: ...
    def close(self) -> None: ...
    def __enter__(self: _F) -> _F: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None: ...

# For keys from pyarrow, which has no types, `observe` and `contains` return a BooleanArray.
@type_check_only
class _WholeFilter(_AnyFilter):
    @overload
    def observe(self, keys: _Field, times: _Times | None = None) -> bool: ...  # type: ignore[overload-overlap]
    @overload
    def observe(self, keys: _Keys, times: _Times | None = None) -> npt.NDArray[np.bool_]: ...
    def observe_one(self, key: _Key, time: int | None = None) -> bool: ...
    @overload
    def contains(self, keys: _Field) -> bool: ...  # type: ignore[overload-overlap]
    @overload
    def contains(self, keys: _Keys) -> npt.NDArray[np.bool_]: ...
    def clear(self) -> None: ...

@final
class Filter(_WholeFilter):
    def __new__(
        cls,
        spec: str | None = None,
        *,
        memory: int | str | None = None,
        fpr: float | None = None,
        window: int | str | timedelta | None = None,
        refresh: bool | None = None,
        tick: _Tick | None = None,
        seed: int = 0,
        secret: bytes | None = None,
    ) -> Filter: ...
    def advance_to(self, tick: int) -> None: ...
    @property
    def tick(self) -> _Tick | None: ...
    @staticmethod
    def load(
        path: _Path,
        *,
        seed: int = 0,
        secret: bytes | None = None,
        tick: _Tick | None = None,
        memory_limit: int | None = None,
    ) -> Filter: ...

@final
class ExactFilter(_WholeFilter):
    def __new__(
        cls,
        spec: str | None = None,
        *,
        memory: int | str | None = None,
        seed: int = 0,
        secret: bytes | None = None,
    ) -> ExactFilter: ...
    @staticmethod
    def load(
        path: _Path,
        *,
        seed: int = 0,
        secret: bytes | None = None,
        memory_limit: int | None = None,
    ) -> ExactFilter: ...

@final
class SharedFilter(_WholeFilter):
    def __new__(
        cls,
        spec: str | None = None,
        *,
        memory: int | str | None = None,
        seed: int = 0,
        secret: bytes | None = None,
    ) -> SharedFilter: ...
    def advance_to(self, tick: int) -> None: ...
    @staticmethod
    def load(
        path: _Path,
        *,
        seed: int = 0,
        secret: bytes | None = None,
        memory_limit: int | None = None,
    ) -> SharedFilter: ...

@final
class OrderedFilter(_AnyFilter):
    def __new__(
        cls,
        spec: str,
        *,
        partitions: int,
        tick: _Tick | None = None,
        seed: int = 0,
        secret: bytes | None = None,
    ) -> OrderedFilter: ...
    def thread(self) -> OrderedThread: ...
    def save(
        self,
        path: _Path,
        data: bytes | None = None,
        *,
        before: Callable[[], None] | None = None,
        position: Callable[[], bytes] | None = None,
    ) -> None: ...
    @staticmethod
    def load(
        path: _Path,
        *,
        partitions: int,
        seed: int = 0,
        secret: bytes | None = None,
        tick: _Tick | None = None,
        memory_limit: int | None = None,
    ) -> OrderedFilter: ...

@final
class OrderedThread:
    def take(self) -> None: ...
    def leave(self) -> None: ...
    def wait(self, seconds: float) -> bool: ...
    @overload
    def observe(self, keys: _Field, times: _Times | None = None) -> bool: ...  # type: ignore[overload-overlap]
    @overload
    def observe(self, keys: _Keys, times: _Times | None = None) -> npt.NDArray[np.bool_]: ...

def dedup(
    iterable: Iterable[_T],
    key: Callable[[_T], _Key] | None = None,
    *,
    filter: Filter | ExactFilter | None = None,
    memory: int | str = "64MiB",
    fpr: float | None = None,
    window: int | str | timedelta | None = None,
    time: Callable[[_T], int] | None = None,
    batch: int = 1024,
) -> Iterator[_T]: ...
def dedup_file(
    inputs: _Path | Sequence[_Path],
    output: _Path,
    *,
    command: _Path | None = None,
    **options: Any,
) -> dict[str, Any]: ...
def plan(
    stream: str | _Keys,
    memory: int | str | None = None,
    *,
    window: int | None = None,
    max_fpr: float | None = None,
    max_fnr: float | None = None,
    records: int | None = None,
    seed: int = 1,
    budget: float = 10.0,
    threads: int = 1,
) -> dict[str, Any]: ...
def evaluate(
    specs: str | Iterable[str],
    stream: str | _Keys,
    *,
    seed: int = 1,
    points: int = 1,
    ages: bool = False,
    window: int | None = None,
) -> dict[str, Any]: ...
