"""Trace readers of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from ._native import OptionError

_OWN_FORMATS = ("csv", "common", "spc", "msr", "fiu", "blkparse", "fio")
_registered: dict[str, TraceReader] = {}


class TraceReader:
    """Reads a format that elastripe does not know."""

    def requests(self, path: str | PathLike[str]) -> Iterable[Any]:
        """The requests of a file, in order.

        A structured array or DataFrame with the fields of ``REQUEST``, or tuples ``(time_us, op,
        offset_bytes, length_bytes)`` with the number of the device as a fifth part where there are several:
        microseconds since the start of the trace, an ``Op`` or its letter (R, W, F, T), bytes, bytes."""
        raise NotImplementedError


def register_reader(name: str, reader: TraceReader) -> None:
    """From now on ``format=name`` reads with this reader, in ``open_trace`` and wherever a trace is named."""
    if name in _OWN_FORMATS:
        raise OptionError(
            f"register_reader: found {name!r}, which is a format of elastripe; take another name"
        )
    _registered[name] = reader


def registered(name: object) -> TraceReader | None:
    return _registered.get(name) if isinstance(name, str) else None
