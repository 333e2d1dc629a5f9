"""Policies of one's own.

All times are numbers of chunks that users have written so far: the clock stands still when nobody writes, and
moves by garbage collection do not advance it. A policy serves one run: make a new one for the next.

What a method raises ends the run, and comes out of the call that started it. An answer that is none is a
``ValueError``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._native import CollectedUnit, GcWrite, UserWrite

UNIT: np.dtype[np.void] = np.dtype(
    [("unit", "<u4"), ("valid", "<u4"), ("written", "<u4"), ("class_", "<u4"), ("closed", "<u8")]
)
"""What a victim policy sees of a unit: its number, its valid chunks, the chunks it was closed with, its
class, and the time at which it was closed."""


class PlacementPolicy:
    """Which chunks are written together: a class for each. Low classes are for what is expected to be
    overwritten soon.

    The store has one open group per class. A group that is full is written as a unit; units whose chunks have
    mostly been overwritten are collected: their valid chunks are placed again."""

    classes: int = 1
    """Number of classes, those for garbage collection included: 1 to 8. Looked at once, at the beginning."""

    needs_times: bool = False
    """Whether ``previous`` and ``written`` are wanted; without it they are ``None``. Looked at once."""

    def place_user(self, write: UserWrite) -> int:
        """The class for a chunk that a user writes, 0 to ``classes - 1``; asked once for every chunk, in
        order."""
        raise NotImplementedError

    def place_gc(self, write: GcWrite) -> int:
        """The class for a valid chunk that garbage collection moves."""
        raise NotImplementedError

    def note_collected(self, unit: CollectedUnit) -> None:
        """A unit is about to be collected; told before its first chunk is placed."""


class VictimPolicy:
    """Which unit is collected next."""

    def choose_victim(self, units: npt.NDArray[np.void], capacity: int, now: int) -> int | None:
        """The row of ``units`` to collect, or ``None`` for none now.

        ``units`` has the dtype ``UNIT`` and a row for each unit that may be collected and would free space:
        ``valid`` is below ``capacity``, the chunks of a full unit. Never empty. ``now`` is the time."""
        raise NotImplementedError


class HotnessPolicy:
    """How hot chunks are, for the placement ``was``: a group per tier."""

    tiers: int = 2
    """How many tiers it tells apart: 2 to 7. Looked at once, at the beginning."""

    def identify(self, chunk: int, now: int) -> int:
        """A user writes ``chunk`` at time ``now``: how hot it is, from 0 (cold) to ``tiers - 1``.

        Chunks of a request that goes on where the one before ended get its verdict and are not asked for.
        """
        raise NotImplementedError


def _rows(policy: Any) -> Callable[[bytes, int, int], int | None]:
    """The policy as the compiled part asks it: units as bytes."""
    choose = policy.choose_victim

    def pick(units: bytes, capacity: int, now: int) -> int | None:
        row: int | None = choose(np.frombuffer(units, UNIT), capacity, now)
        return row

    return pick


def _name(policy: object) -> str:
    return f"python:{type(policy).__qualname__}"
