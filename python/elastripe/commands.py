"""The commands of the laboratory, with their options as keyword arguments.

``simulate(queue_depth=8, ssd_size="4GiB", fill=True)`` is ``elastripe simulate --queue-depth 8 --ssd-size
4GiB --fill``."""

from __future__ import annotations

import datetime
import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._native import OptionError
from .policies import HotnessPolicy, PlacementPolicy, VictimPolicy, _name, _rows
from .progress import Progress, reporter
from .readers import registered
from .results import Result
from .traces import Path, Trace, open_trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import FlashOptions, PlaceOptions, ReliabilityOptions, ReplayOptions, SimulateOptions

TraceLike = Union[Trace, Path, Sequence[Path], Any]
"""A trace, the files of one, or what ``Trace`` is made of: a structured array, a DataFrame, tuples."""

# Given by arguments of their own.
_APART = {"trace", "workload"}


@functools.cache
def _known(command: str) -> dict[str, _native._Option]:
    return {option["name"].replace("-", "_"): option for option in _native.options(command)}


def option_help(command: str) -> dict[str, str]:
    """What the options of a command do: ``option_help("simulate")["queue_depth"]``."""
    return {name: _help(option) for name, option in _known(command).items()}


def _help(option: _native._Option) -> str:
    said = " ".join(option["help"].split())
    if option["values"]:
        said += f" One of: {', '.join(option['values'])}."
    return said + (f" [default: {option['default']}]" if option["default"] is not None else "")


def _text(option: _native._Option, value: Any) -> str:
    """A value as a word of the command line: numbers of sizes are bytes, of rates bytes per second."""
    name = option["name"].replace("-", "_")
    if isinstance(value, (str, os.PathLike)):
        return str(os.fspath(value))
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    if isinstance(value, datetime.timedelta):
        return f"{value.total_seconds():.6f}s"
    kind = (option["value"] or "").split(",")[0]
    if kind in ("SIZE", "RATE") and isinstance(value, float):
        if not value.is_integer():
            raise OptionError(f"{name}: found {value!r}, expected whole bytes or a string with a unit")
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}{ {'SIZE': 'B', 'RATE': 'B/s'}.get(kind, '') }"
    if isinstance(value, float):
        return f"{value!r}"
    raise OptionError(f"{name}: found {value!r}, expected a string, a number or a timedelta")


def _sweep(value: Any) -> list[str]:
    """Axes: ``{"queue_depth": [1, 8], "fill": [True, False]}``, or as on the command line."""
    if not isinstance(value, Mapping):
        axes = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
        if not all(isinstance(axis, str) for axis in axes):
            raise OptionError(f"sweep: found {value!r}, expected a dict of options and lists of values")
        return axes
    known = _known("simulate")
    axes = []
    for name, values in value.items():
        option = known.get(name)
        if option is None:
            raise OptionError(f"sweep: found {name!r}, which is no option of simulate")
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise OptionError(f"sweep: found {values!r} for {name}, expected a list of values")
        words = [("on" if one else "off") if isinstance(one, bool) else _text(option, one) for one in values]
        axes.append(f"{option['name']}={','.join(words)}")
    return axes


def _words(command: str, options: Mapping[str, Any]) -> list[str]:
    known = _known(command)
    words: list[str] = []
    for name, value in options.items():
        option = known.get(name)
        if option is None or name in _APART:
            expected = ", ".join(sorted(set(known) - _APART))
            raise OptionError(f"{command}: found the option {name!r}, expected one of {expected}")
        if value is None or value is False:
            continue
        if name == "sweep":
            words += [f"--sweep={axis}" for axis in _sweep(value)]
        elif name == "members":
            members = [value] if isinstance(value, (str, os.PathLike)) else value
            words += [str(os.fspath(member)) for member in members]
        elif value is True:
            words.append(f"--{option['name']}")
        elif isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "ndarray":
            values = [_text(option, one) for one in value]
            if not option["takes_several"] and len(values) != 1:
                raise OptionError(f"{name}: found {len(values)} values, expected one")
            words += [
                f"--{option['name']}={one}" for one in ([",".join(values)] if option["joined"] else values)
            ]
        else:
            words.append(f"--{option['name']}={_text(option, value)}")
    # Members are no options: they come last, behind what could take them for a value.
    return sorted(words, key=lambda word: not word.startswith("--"))


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _memory(trace: Trace) -> _native._Memory:
    synthetic = "; ".join(trace.synthetic) or None
    return {"requests": trace.requests.tobytes(), "name": trace.name, "synthetic": synthetic}


def _load(trace: TraceLike, options: dict[str, Any]) -> tuple[list[str], _native._Memory | None]:
    """Words that name a trace, or the trace itself."""
    if trace is None:
        return [], None
    files = [trace] if _is_path(trace) else trace
    if (
        not isinstance(files, Trace)
        and isinstance(files, (list, tuple))
        and files
        and all(map(_is_path, files))
    ):
        if registered(options.get("format")) is None:
            return [f"--trace={os.fspath(file)}" for file in files], None
        files = open_trace(files, format=options.pop("format"))
    return [], _memory(files if isinstance(files, Trace) else Trace(files))


def _policies(
    placement: object, gc: object, hotness: object, options: dict[str, Any]
) -> _native._Policies | None:
    """The policies that are objects; those that are names become options."""
    own: dict[str, object | None] = {"placement": None, "gc": None, "hotness": None}
    for name, value in (("placement", placement), ("gc", gc), ("hotness", hotness)):
        if value is None or isinstance(value, str):
            options[name] = value
        else:
            own[name] = value
    named = own["placement"]
    if own["hotness"] is not None:
        if options.get("placement") not in ("was", None) or named is not None:
            raise OptionError('hotness: found an identifier of one\'s own, expected with placement="was"')
        options["placement"] = None
        if options.pop("groups", None) is not None:
            raise OptionError(
                "groups: found beside an identifier of one's own, which says how many there are"
            )
    group = options.pop("gc_group", None) if own["hotness"] is not None else None
    if group not in (None, "coldest", "own"):
        raise OptionError(f"gc_group: found {group!r}, expected coldest or own")
    if all(value is None for value in own.values()):
        return None
    placed = f"was by {_name(own['hotness'])}" if own["hotness"] is not None else None
    return {
        "placement": named,
        "hotness": own["hotness"],
        "victims": None if own["gc"] is None else _rows(own["gc"]),
        "gc_apart": group == "own",
        "placement_name": placed if named is None else _name(named),
        "victims_name": None if own["gc"] is None else _name(own["gc"]),
    }


def _run(
    command: str,
    words: list[str],
    memory: _native._Memory | None,
    policies: _native._Policies | None,
    progress: Progress,
) -> Result:
    with reporter(progress) as tell:
        return Result(json.loads(_native.run(command, words, memory, policies, tell)))


def simulate(
    trace: TraceLike = None,
    *,
    placement: str | PlacementPolicy | None = None,
    gc: str | VictimPolicy | None = None,
    hotness: str | HotnessPolicy | None = None,
    progress: Progress = None,
    **options: Unpack[SimulateOptions],
) -> Result:
    """A trace through the engine as it ships, over simulated SSDs in virtual time.

    ``placement``, ``gc`` and ``hotness`` are names, or policies of one's own (schemes ``elastic`` and
    ``was``). With ``compare=["raid", "eplog"]`` or ``sweep={"queue_depth": [1, 8]}`` the result has a row for
    each cell."""
    given: dict[str, Any] = dict(options)
    policies = _policies(placement, gc, hotness, given)
    words, memory = _load(trace, given)
    return _run("simulate", words + _words("simulate", given), memory, policies, progress)


def place(
    trace: TraceLike = None,
    *,
    placement: str | PlacementPolicy | None = None,
    gc: str | VictimPolicy | None = None,
    hotness: str | HotnessPolicy | None = None,
    progress: Progress = None,
    **options: Unpack[PlaceOptions],
) -> Result:
    """Placement alone: the writes of a trace through a log-structured store without devices.

    It counts what garbage collection moves (``gc_chunks_rewritten``), in chunks. Much faster than
    ``simulate``; what the engine adds (parity, short stripes, collection in steps) is left out."""
    given: dict[str, Any] = dict(options)
    policies = _policies(placement, gc, hotness, given)
    words, memory = _load(trace, given)
    return _run("place", words + _words("place", given), memory, policies, progress)


def replay(trace: TraceLike = None, *, progress: Progress = None, **options: Unpack[ReplayOptions]) -> Result:
    """A trace through an array in this process: ``device="null"`` or ``"memory"``, ``members=[...]`` or
    ``nbd=...``.

    With ``verify=True`` every byte read is checked; what does not hold is an ``Error``.
    """
    given: dict[str, Any] = dict(options)
    words, memory = _load(trace, given)
    return _run("replay", words + _words("replay", given), memory, None, progress)


def flash(
    workload: TraceLike = "uniform", *, progress: Progress = None, **options: Unpack[FlashOptions]
) -> Result:
    """One simulated SSD alone: written to until it is in its steady state, then counted.

    ``workload`` is ``"uniform"``, ``"zipf:THETA"``, or a trace. ``seed`` is 1 if not given.
    """
    given: dict[str, Any] = {"seed": 1, **options}
    memory = None
    if isinstance(workload, (str, os.PathLike)):
        name = os.fspath(workload)
    else:
        trace = workload if isinstance(workload, Trace) else Trace(workload)
        memory = _memory(trace)
        # A trace that is called as a pattern is none.
        is_pattern = trace.name == "uniform" or trace.name.startswith("zipf:")
        name = f"./{trace.name}" if is_pattern else trace.name
    words = [f"--workload={name}", *_words("flash", given)]
    return _run("flash", words, memory, None, progress)


def reliability(*, progress: Progress = None, **options: Unpack[ReliabilityOptions]) -> Result:
    """How likely arrays lose data, and how much: closed forms, a Markov chain, Monte Carlo; a row for each
    array.

    Times and rates have their units: ``mttf="1500000h"``, ``failure_rate="0.25/y"``, ``within="10y"``.
    """
    return _run("reliability", _words("reliability", dict(options)), None, None, progress)


def presets() -> list[dict[str, Any]]:
    """The presets of SSDs and disks, for ``ssd`` and ``log_device``."""
    found: list[dict[str, Any]] = json.loads(_native.presets())
    return found


def _documented(functions: Iterable[Any]) -> None:
    """Puts the options into the docstrings, as the command line knows them."""
    for function in functions:
        lines = [function.__doc__.rstrip(), "", "    Options:", ""]
        for name, option in _known(function.__name__).items():
            if name not in _APART:
                value = f" {option['value']}" if option["value"] else ""
                lines.append(f"    {name}{value}: {_help(option)}")
        function.__doc__ = "\n".join([*lines, "    "])


_documented([simulate, place, replay, flash, reliability])
