"""The laboratory of elastripe from Python.

Traces are NumPy arrays; ``simulate``, ``replay``, ``flash``, ``reliability`` and ``place`` run what the
commands of the same names run, in the same engine, with their options as keyword arguments; placement, victim
and hotness policies and trace readers may be written in Python.

Sizes are bytes if they are numbers, and have their unit if they are strings (``"4KiB"``). Times of policies
are numbers of chunks that users have written so far."""

from __future__ import annotations

from pathlib import Path as _Path

from . import _native
from ._native import CollectedUnit, Error, GcWrite, InternalError, OptionError, UserWrite
from .commands import flash, option_help, place, presets, reliability, replay, simulate
from .policies import UNIT, HotnessPolicy, PlacementPolicy, VictimPolicy
from .readers import TraceReader, register_reader
from .results import Result
from .traces import REQUEST, Op, Trace, generate, open_trace

__all__ = [
    "REQUEST",
    "UNIT",
    "CollectedUnit",
    "Error",
    "GcWrite",
    "HotnessPolicy",
    "InternalError",
    "Op",
    "OptionError",
    "PlacementPolicy",
    "Result",
    "Trace",
    "TraceReader",
    "UserWrite",
    "VictimPolicy",
    "__version__",
    "flash",
    "generate",
    "open_trace",
    "option_help",
    "place",
    "presets",
    "register_reader",
    "reliability",
    "replay",
    "simulate",
]

__version__: str = _native.version().split()[0]

# Results say which build they come from: that of this library, not of the interpreter.
_native.set_program(_Path(_native.__file__))
