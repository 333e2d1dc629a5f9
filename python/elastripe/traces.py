"""Traces as NumPy arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._native import OptionError
from .progress import Progress, reporter
from .readers import TraceReader, registered

if TYPE_CHECKING:
    import pandas

REQUEST: np.dtype[np.void] = np.dtype(
    {
        "names": ["time_us", "device", "op", "offset_bytes", "length_bytes"],
        "formats": ["<u8", "<u4", "u1", "<u8", "<u8"],
        "offsets": [0, 8, 12, 16, 24],
        "itemsize": 32,
    }
)
"""A request: microseconds since the start of the trace, number of the device, what it does (``Op``), first
byte, bytes."""

Path = Union[str, "os.PathLike[str]"]
Size = Union[int, float, str]


class Op(IntEnum):
    """What a request does."""

    READ = 0
    WRITE = 1
    FLUSH = 2
    TRIM = 3


_OPS = {name: op for op in Op for name in (op.name.lower(), op.name[0].lower())}


def _op(value: Any) -> int:
    if isinstance(value, str):
        op = _OPS.get(value.lower())
        if op is None:
            raise OptionError(f"op is {value!r}, expected R, W, F or T")
        return int(op)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not hasattr(value, "__index__") or value not in tuple(Op):
        raise OptionError(f"op: found {value!r}, expected 0 (read), 1 (write), 2 (flush) or 3 (trim)")
    return int(value)


_FLOAT_MAX = 2.0**53
"""Up to here numbers with a point are exact; beyond, whoever wrote them meant others."""


def _whole(values: Any, field: str) -> npt.NDArray[Any]:
    """Whole numbers that are not negative, as they are, or an error: nothing is cut off in silence."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise OptionError(f"{field}: found {array.ndim} dimensions, expected a column")
    if array.dtype.kind == "f" and array.size and np.isfinite(array).all():
        if np.all(np.mod(array, 1) == 0) and array.min() >= 0:
            if array.max() > _FLOAT_MAX:
                found = array.max()
                raise OptionError(f"{field}: found {found}, which is too large to be exact; use integers")
            return array.astype("<u8")
    if array.size == 0 or array.dtype.kind == "u":
        return array.astype("<u8")
    if array.dtype.kind != "i" or array.min() < 0:
        raise OptionError(f"{field}: found {array.dtype} values, expected whole numbers from 0")
    return array.astype("<u8")


def _columns(get: Any, names: Iterable[str]) -> npt.NDArray[np.void]:
    known = set(names)
    missing = {"op", "offset_bytes", "length_bytes"} - known
    if missing:
        raise OptionError(f"requests: found the fields {sorted(known)}, expected {sorted(missing)} too")
    op = np.asarray(get("op"))
    if op.dtype.kind not in "iu":
        op = np.array([_op(value) for value in op.tolist()], dtype="u1")
    out = np.zeros(len(op), REQUEST)
    for field in ("time_us", "device", "offset_bytes", "length_bytes"):
        if field in known:
            values = _whole(get(field), field)
            if field == "device" and values.size and values.max() > np.iinfo(np.uint32).max:
                raise OptionError("device: found a number above 2^32 - 1")
            out[field] = values
    values = _whole(op, "op")
    if values.size and values.max() > max(Op):
        raise OptionError(f"op: found {values.max()}, expected 0 (read), 1 (write), 2 (flush) or 3 (trim)")
    out["op"] = values
    return out


def _as_requests(given: Any) -> npt.NDArray[np.void]:
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        if given.ndim != 1:
            raise OptionError(f"requests: found {given.ndim} dimensions, expected one")
        if given.dtype == REQUEST:
            return np.ascontiguousarray(given)
        return _columns(lambda field: given[field], given.dtype.names)
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        return _columns(lambda field: given[field].to_numpy(), [str(name) for name in given.columns])
    try:
        rows = [tuple(row) for row in given]
    except TypeError:
        expected = "a Trace, paths, a structured array, a DataFrame or tuples"
        raise OptionError(f"trace: found {given!r}, expected {expected}") from None
    for row in rows:
        if len(row) not in (4, 5):
            raise OptionError(
                f"request {row}: expected time_us, op, offset_bytes, length_bytes and perhaps the device"
            )
    fields = ("time_us", "op", "offset_bytes", "length_bytes", "device")
    lists = [[row[place] if place < len(row) else 0 for row in rows] for place in range(5)]
    lists[1] = [_op(value) for value in lists[1]]
    pairs = zip(fields, lists, strict=True)
    columns = {field: _column(values, field) for field, values in pairs}
    return _columns(columns.__getitem__, fields)


def _column(values: list[Any], field: str) -> npt.NDArray[Any]:
    """Numbers of Python, which NumPy takes for rounded ones where large and small ones meet."""
    if not all(hasattr(value, "__index__") for value in values):
        return np.array(values)
    try:
        return np.array(values, dtype="<u8")
    except OverflowError:
        wrong = next(value for value in values if not 0 <= value < 1 << 64)
        raise OptionError(f"{field}: found {wrong}, expected whole numbers from 0 below 2^64") from None


class Trace:
    """Requests in the order in which they were issued.

    ``requests`` is what a structured array of dtype ``REQUEST`` needs: such an array, one or a DataFrame with
    its fields (``time_us`` and ``device`` may be absent), or tuples ``(time_us, op, offset_bytes,
    length_bytes[, device])``."""

    def __init__(
        self,
        requests: Any,
        *,
        name: str = "trace",
        synthetic: Sequence[str] = (),
        labels: Sequence[str] = (),
        bad_lines: int = 0,
    ) -> None:
        array = _as_requests(requests)
        if array.flags.writeable:
            array = array.copy()
            array.flags.writeable = False
        self._requests = array
        self.name = name
        """What it is called in results."""
        self.synthetic = list(synthetic)
        """What it says of itself if it is synthetic, or made of such traces."""
        self.bad_lines = bad_lines
        """Lines that were passed over when it was read."""
        self._labels = list(labels)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copies of arrays can be written to, and so can those of other processes.
        self.__dict__.update(state)
        self._requests.flags.writeable = False

    @property
    def requests(self) -> npt.NDArray[np.void]:
        """The requests, dtype ``REQUEST``, read-only: copy it to change it, and make a new trace of the
        copy."""
        return self._requests

    @property
    def time_us(self) -> npt.NDArray[np.uint64]:
        """Microseconds since the start of the trace."""
        column: npt.NDArray[np.uint64] = self._requests["time_us"]
        return column

    @property
    def device(self) -> npt.NDArray[np.uint32]:
        """Number of the device."""
        column: npt.NDArray[np.uint32] = self._requests["device"]
        return column

    @property
    def op(self) -> npt.NDArray[np.uint8]:
        """What requests do: numbers of ``Op``."""
        column: npt.NDArray[np.uint8] = self._requests["op"]
        return column

    @property
    def offset_bytes(self) -> npt.NDArray[np.uint64]:
        """First bytes."""
        column: npt.NDArray[np.uint64] = self._requests["offset_bytes"]
        return column

    @property
    def length_bytes(self) -> npt.NDArray[np.uint64]:
        """Bytes."""
        column: npt.NDArray[np.uint64] = self._requests["length_bytes"]
        return column

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, where: slice | npt.NDArray[Any]) -> Trace:
        """Some of the requests: a slice, or an array of booleans or places."""
        part = self._requests[where]
        if part.ndim != 1:
            raise OptionError("a trace is cut by a slice or an array; a single request is trace.requests[i]")
        return Trace(part, name=self.name, synthetic=[f"part of: {line}" for line in self.synthetic])

    def __repr__(self) -> str:
        said = f", synthetic: {'; '.join(self.synthetic)}" if self.synthetic else ""
        return f"<elastripe.Trace {self.name!r}: {len(self)} requests{said}>"

    def to_frame(self) -> pandas.DataFrame:
        """The requests as a pandas DataFrame; ``op`` is a category of ``read``, ``write``, ``flush``,
        ``trim``."""
        import pandas

        frame = pandas.DataFrame({field: self._requests[field] for field in REQUEST.names or ()})
        names = [op.name.lower() for op in Op]
        frame["op"] = pandas.Categorical([names[op] for op in self.op], categories=names)
        return frame

    def stats(
        self, *, chunk_size: Size = "4KiB", dev_mode: str = "concatenate", progress: Progress = None
    ) -> dict[str, Any]:
        """What the papers print of a trace: the keys of ``trace info --json``. ``dev_mode``: ``concatenate``
        or ``ignore``."""
        if dev_mode not in ("concatenate", "ignore"):
            raise OptionError(f"dev_mode: found {dev_mode!r}, expected concatenate or ignore")
        with reporter(progress) as tell:
            text = _native.statistics(
                self._requests.tobytes(), _bytes(chunk_size), dev_mode == "ignore", tell
            )
        figures: dict[str, Any] = json.loads(text)
        return figures

    def save(
        self, path: Path, *, format: str = "csv", force: bool = False, progress: Progress = None
    ) -> tuple[int, int]:
        """Writes it, whole or not at all: ``csv`` (the common form), ``spc``, ``msr`` or ``fio``; ``.zst``
        and ``.gz`` are compressed.

        A file that is there is overwritten with ``force`` only. Answers how many requests were written, and
        how many were left out because the format has none such."""
        with reporter(progress) as tell:
            return _native.write(os.fspath(path), self._requests.tobytes(), format, self._labels, force, tell)


def _bytes(size: Size) -> int:
    return _native.parse_size(size) if isinstance(size, str) else _count(size, "size")


def _count(value: Any, name: str) -> int:
    """A whole number from 0 that has 64 bits."""
    found = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(found, bool) or not hasattr(found, "__index__") or not 0 <= found < 1 << 64:
        raise OptionError(f"{name}: found {value!r}, expected a whole number from 0")
    return int(found)


def open_trace(
    path: Path | Sequence[Path],
    *,
    format: str | None = None,
    reader: TraceReader | None = None,
    skip_bad_lines: bool = False,
    progress: Progress = None,
) -> Trace:
    """Reads a trace file, or several as one trace in that order; gzip and zstd are unpacked.

    ``format``: csv, spc, msr, fiu, blkparse, fio, or the name of a registered reader; detected if not given.
    ``reader`` reads instead. ``skip_bad_lines``: count lines that are not understood and pass over them,
    instead of raising at the first."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    name = ", ".join(os.path.basename(os.fspath(one)) for one in paths)
    own = reader or registered(format)
    if own is not None:
        parts = [_as_requests(own.requests(one)) for one in paths]
        return Trace(_joined(parts), name=name)
    with reporter(progress) as tell:
        content, known = _native.read([os.fspath(one) for one in paths], format, skip_bad_lines, tell)
    return _of(content, known, name)


_PAUSE_US_MAX = 366 * 86_400 * 1_000_000
"""Longer pauses between files are none: such clocks do not count from the same moment."""


def _joined(parts: list[npt.NDArray[np.void]]) -> npt.NDArray[np.void]:
    """Traces one behind the other. Times count from the first request, and what lies before it counts as
    that. A file that begins where the ones before were near their end goes on by the same clock, another one
    begins when they end (as in ``crates/trace/src/clock.rs``)."""
    begin: int | None = None
    since = latest = 0
    for place, part in enumerate(parts):
        if not len(part):
            continue
        first, length = int(part["time_us"][0]), latest - since
        passed = -1 if begin is None else first - begin
        if begin is None or not (length + 1) // 2 <= passed <= length + _PAUSE_US_MAX:
            since, begin = latest, first
        part = parts[place] = part.copy()
        # Unsigned numbers below the first one would wrap.
        part["time_us"] = np.maximum(part["time_us"], np.uint64(begin)) - np.uint64(begin) + np.uint64(since)
        latest = max(latest, int(part["time_us"].max()))
    return np.concatenate(parts) if parts else np.zeros(0, REQUEST)


def generate(
    profile: str,
    *,
    requests: int | None = None,
    seed: int = 1,
    range: Size | None = None,
    progress: Progress = None,
) -> Trace:
    """A synthetic trace, as ``trace generate`` writes it: same profile and seed, same requests.

    ``profile``: was-synthetic, was-synthetic-fifth, fin, web, usr, mds, online, webmail, online-webmail,
    zipf:THETA or uniform. ``requests``: how many; as many as published if not given, 1,000,000 for zipf and
    uniform. ``range``: bytes of the addresses of zipf and uniform; 1 GiB if not given."""
    range_bytes = None if range is None else _bytes(range)
    requests = None if requests is None else _count(requests, "requests")
    with reporter(progress) as tell:
        content, known = _native.generate(profile, requests, _count(seed, "seed"), range_bytes, tell)
    return _of(content, known, profile)


def _of(content: bytes, known: _native._Known, name: str) -> Trace:
    array = np.frombuffer(content, REQUEST)
    return Trace(
        array, name=name, synthetic=known["synthetic"], labels=known["labels"], bad_lines=known["bad_lines"]
    )
