"""The generator ``dedup``."""

from itertools import islice

from ._echoless import Filter


def dedup(
    iterable,
    key=None,
    *,
    filter=None,
    memory="64MiB",
    fpr=None,
    window=None,
    time=None,
    batch=1024,
):
    """Yields the items whose keys did not come before, in their order.

    ``key`` maps an item to its key: bytes, str, int, or a tuple of them; the items are the keys
    without it. ``memory``, ``fpr`` and ``window`` are those of ``Filter``; or pass a ``filter`` of
    your own, such as one that was loaded.

    ``time`` maps an item to its tick. Without it, a window is a number of items: a key is
    remembered for the next ``window`` items, and for up to a fifth of them longer.

    Items are read in batches of ``batch``, so the first item is yielded after so many were read.
    For interactive streams, and to stop early with a ``filter`` that goes on elsewhere, use
    ``batch=1``: then nothing is read or recorded ahead of what is yielded.

    If the iterable, ``key`` or ``time`` raises an exception, the items before are yielded first
    and are recorded; the item itself is not.

    >>> from echoless import dedup
    >>> calls = [("+4930123", 17), ("+4930456", 17), ("+4930123", 18)]
    >>> list(dedup(calls, key=lambda call: call[0]))
    [('+4930123', 17), ('+4930456', 17)]
    >>> list(dedup("abcabba", window=2))
    ['a', 'b', 'c', 'a', 'b', 'a']
    """
    if batch < 1:
        raise ValueError(f"invalid batch={batch}: expected 1 or more")
    if filter is None:
        filter = Filter(memory=memory, fpr=fpr, window=window)
    elif window is not None or fpr is not None:
        raise ValueError("invalid window or fpr: expected none beside a filter")
    elif time is None and filter.report()["window_ticks"]:
        raise ValueError("invalid filter: expected a function time= beside one with a window")
    counts = time is None and window is not None
    if counts and not isinstance(window, int):
        raise ValueError(
            f"invalid window={window!r}: expected a number of items, or a function time="
        )
    return _dedup(iter(iterable), key, filter, time, counts, batch)


def _dedup(items, key, filter, time, counts, batch):
    number = 0
    error = None
    while error is None:
        taken, keys, times = [], [], [] if time is not None or counts else None
        try:
            for item in islice(items, batch):
                item_key = item if key is None else key(item)
                if time is not None:
                    times.append(time(item))
                elif counts:
                    times.append(number)
                    number += 1
                keys.append(item_key)
                taken.append(item)
        except Exception as raised:
            # The items before it come first.
            error = raised
        if not taken:
            break
        if times is not None:
            del times[len(taken) :]
        yield from _judge(filter, taken, keys, times)
    if error is not None:
        raise error


def _judge(filter, items, keys, times):
    try:
        # As an iterator: a list of arrays would be columns, whose rows are the keys.
        duplicates = filter.observe(iter(keys), times).tolist()
    except (TypeError, ValueError):
        # Nothing was judged. One by one, the exception comes where it belongs.
        for index, item in enumerate(items):
            time = None if times is None else times[index]
            if time is None and times is not None:
                raise TypeError("invalid time=None: expected the tick of an item")
            if not filter.observe_one(keys[index], time):
                yield item
        return
    for item, duplicate in zip(items, duplicates, strict=True):
        if not duplicate:
            yield item
