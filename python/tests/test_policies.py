"""Policies in Python: the same counts as the built-in ones, in the store without devices and in the
engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sepbit import Greedy, SepBit

import elastripe
from elastripe import CollectedUnit, GcWrite, Trace, UserWrite

COUNTS = (
    "user_chunks_written",
    "absorbed_chunks",
    "gc_chunks_rewritten",
    "units_collected",
    "units_written",
    "unique_chunks",
    "write_amplification",
)
# 6+2 over SSDs of 16 MiB: small enough that units are collected.
SMALL: Any = {
    "ssd": "was-ssd",
    "ssd_size": "16MiB",
    "device_size": "3MiB",
    "untimed": True,
    "gc_unit": 8,
    "fill": True,
}


def counts(result: elastripe.Result) -> list[object]:
    return [result[key] for key in COUNTS]


@pytest.mark.parametrize("times", ["exact", "stamps"])
@pytest.mark.parametrize("fill", [False, True])
def test_sepbit_in_python_is_the_built_in_sepbit(zipf: Trace, times: Any, fill: bool) -> None:
    options: Any = {"unit_size": "64KiB", "times": times, "fill": fill}
    ours = elastripe.place(zipf, placement="sepbit", **options)
    own = elastripe.place(zipf, placement=SepBit(), **options)
    assert counts(own) == counts(ours)
    # The lifespan has been set, so that every class is in use.
    assert ours["units_collected"] > 200 and ours["gc_chunks_rewritten"] > 2_000
    single = elastripe.place(zipf, placement="single", **options)
    assert counts(single) != counts(ours)
    assert own["placement"]["policy"] == "python:SepBit" and own["placement"]["classes"] == 6


def test_sepbit_in_python_is_the_built_in_sepbit_in_the_engine(zipf: Trace) -> None:
    ours = elastripe.simulate(zipf, scheme="elastic", placement="sepbit", **SMALL)
    own = elastripe.simulate(zipf, scheme="elastic", placement=SepBit(), **SMALL)
    assert ours["gc_chunks_rewritten"] > 1_000
    for key in (
        "requests",
        "user_chunks_written",
        "ssd_chunks_written",
        "gc_chunks_rewritten",
        "erases",
        "devices",
    ):
        assert own[key] == ours[key], key
    assert own["placement"]["policy"] == "python:SepBit" and own["placement"]["classes"] == 6


def test_greedy_in_python_is_the_built_in_greedy(zipf: Trace) -> None:
    ours = elastripe.place(zipf, placement="sepbit", gc="greedy", unit_size="64KiB")
    policy = Greedy()
    own = elastripe.place(zipf, placement="sepbit", gc=policy, unit_size="64KiB")
    assert counts(own) == counts(ours) and own["placement"]["gc"] == "python:Greedy"
    in_engine = elastripe.simulate(zipf, scheme="elastic", gc=Greedy(), **SMALL)
    expected = elastripe.simulate(zipf, scheme="elastic", gc="greedy", **SMALL)
    assert in_engine["gc_chunks_rewritten"] == expected["gc_chunks_rewritten"] > 1_000
    assert in_engine["erases"] == expected["erases"]


class Counts(elastripe.HotnessPolicy):
    """A chunk is hot from its third write on."""

    tiers = 2

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.times: list[int] = []

    def identify(self, chunk: int, now: int) -> int:
        self.seen[chunk] = self.seen.get(chunk, 0) + 1
        self.times.append(now)
        return int(self.seen[chunk] > 2)


class CountsPlaced(elastripe.PlacementPolicy):
    """The same as a placement."""

    def __init__(self, apart: bool) -> None:
        self.hotness, self.classes, self.apart = Counts(), 2 + apart, apart
        self.last = 1

    def place_user(self, write: UserWrite) -> int:
        if not write.continues or write.now == 0:
            self.last = 1 - self.hotness.identify(write.chunk, write.now)
        return self.last

    def place_gc(self, write: GcWrite) -> int:
        return 2 if self.apart else 1


@pytest.mark.parametrize("group", ["coldest", "own"])
def test_hotness_of_ones_own_drives_the_placement_was(zipf: Trace, group: Any) -> None:
    hotness = Counts()
    options: Any = {"unit_size": "64KiB"}
    by_hotness = elastripe.place(zipf, placement="was", hotness=hotness, gc_group=group, **options)
    by_placement = elastripe.place(zipf, placement=CountsPlaced(group == "own"), **options)
    assert counts(by_hotness) == counts(by_placement)
    assert by_hotness["placement"]["policy"] == "was by python:Counts"
    assert hotness.times == sorted(hotness.times) and hotness.times[-1] < by_hotness["user_chunks_written"]
    assert by_hotness["gc_chunks_rewritten"] < elastripe.place(zipf, **options)["gc_chunks_rewritten"]


class Recorded(elastripe.PlacementPolicy):
    classes = 2
    needs_times = True

    def __init__(self) -> None:
        self.user: list[UserWrite] = []
        self.gc: list[GcWrite] = []
        self.units: list[CollectedUnit] = []

    def place_user(self, write: UserWrite) -> int:
        self.user.append(write)
        return 0

    def place_gc(self, write: GcWrite) -> int:
        self.gc.append(write)
        return 1

    def note_collected(self, unit: CollectedUnit) -> None:
        self.units.append(unit)


def test_a_policy_is_told_chunks_times_and_sequence() -> None:
    rows = [(0, "W", 4096, 8192), (0, "R", 0, 4096), (0, "W", 12288, 4096), (0, "W", 4096, 4096)]
    policy = Recorded()
    elastripe.place(Trace(rows), placement=policy)
    told = [(write.chunk, write.now, write.previous, write.continues) for write in policy.user]
    assert told == [(1, 0, None, False), (2, 1, None, False), (3, 2, None, True), (1, 3, 0, False)]
    assert repr(policy.user[3]) == "UserWrite(chunk=1, now=3, previous=0, continues=False)"


def test_what_is_moved_has_a_class_and_a_time(zipf: Trace) -> None:
    policy = Recorded()
    result = elastripe.place(zipf, placement=policy, unit_size="64KiB")
    assert len(policy.user) == result["user_chunks_written"]
    assert len(policy.gc) == result["gc_chunks_rewritten"]
    assert len(policy.units) == result["units_collected"]
    assert {write.class_ for write in policy.gc} == {0, 1}
    assert all(write.written is not None and write.written < write.now for write in policy.gc)
    assert all(unit.created < unit.now for unit in policy.units)


class Wrong(elastripe.PlacementPolicy):
    def __init__(self, answer: Any, classes: Any = 2) -> None:
        self.answer, self.classes, self.calls = answer, classes, 0

    def place_user(self, write: UserWrite) -> int:
        self.calls += 1
        if self.calls < 100:
            return 0
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]

    def place_gc(self, write: GcWrite) -> int:
        return 1


@pytest.mark.parametrize("run", [elastripe.place, elastripe.simulate])
@pytest.mark.parametrize("answer", [2, -1, 300, "hot", None, 0.5])
def test_answers_that_are_none_end_the_run(zipf: Trace, run: Any, answer: object) -> None:
    policy = Wrong(answer)
    options: Any = {"scheme": "elastic", **SMALL, "fill": False} if run is elastripe.simulate else {}
    with pytest.raises(ValueError, match="place_user answered .*, expected a number from 0 to 1"):
        run(zipf, placement=policy, **options)
    assert policy.calls == 100, "it is not asked again"


@pytest.mark.parametrize("run", [elastripe.place, elastripe.simulate])
def test_what_a_policy_raises_comes_out_of_the_call(zipf: Trace, run: Any) -> None:
    error = ZeroDivisionError("mine")
    options: Any = {"scheme": "elastic", **SMALL, "fill": False} if run is elastripe.simulate else {}
    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        run(zipf, placement=Wrong(error), **options)
    assert raised.value is error
    assert raised.traceback[-1].name == "place_user"


@pytest.mark.parametrize("classes", [0, 9, -1, "two", None])
def test_classes_are_looked_at_first(zipf: Trace, classes: object) -> None:
    policy = Wrong(0, classes)
    with pytest.raises(elastripe.OptionError, match="classes: found .*, expected a number from 1 to 8"):
        elastripe.place(zipf, placement=policy)
    assert policy.calls == 0


class Chooses(elastripe.VictimPolicy):
    def __init__(self, answer: Any) -> None:
        self.answer, self.calls = answer, 0

    def choose_victim(self, units: npt.NDArray[np.void], capacity: int, now: int) -> int | None:
        self.calls += 1
        assert units.dtype == elastripe.UNIT and len(units) > 0 and capacity == 16
        assert (units["valid"] < capacity).all() and (units["closed"] <= now).all()
        return len(units) if self.answer == "beyond" else self.answer


def test_victims_are_rows_or_none(zipf: Trace) -> None:
    for answer in ("beyond", -1, 0.5, "first", [0, 1]):
        with pytest.raises(ValueError, match="choose_victim answered .*, expected None or a row"):
            elastripe.place(zipf, gc=Chooses(answer), unit_size="64KiB")
    with pytest.raises(elastripe.Error, match="no unit can be freed"):
        elastripe.place(zipf, gc=Chooses(None), unit_size="64KiB")
    first = Chooses(np.int64(0))
    assert elastripe.place(zipf, gc=first, unit_size="64KiB")["units_collected"] == first.calls > 0


def test_policies_and_options_that_mean_nothing_together_are_refused(zipf: Trace) -> None:
    with pytest.raises(elastripe.Error, match="scheme eplog has no groups"):
        elastripe.simulate(zipf, scheme="eplog", placement=SepBit())
    with pytest.raises(elastripe.Error, match="--groups: found beside the policy python:SepBit"):
        elastripe.place(zipf, placement=SepBit(), groups=3)
    with pytest.raises(elastripe.OptionError, match="expected with placement"):
        elastripe.place(zipf, placement="sepbit", hotness=Counts())
    with pytest.raises(elastripe.Error, match="a run for each"):
        elastripe.simulate(zipf, scheme="elastic", placement=SepBit(), sweep={"queue_depth": [1, 2]})
    with pytest.raises(elastripe.OptionError, match="expected single, "):
        elastripe.place(zipf, placement="hot")
    with pytest.raises(NotImplementedError):
        elastripe.place(zipf, placement=elastripe.PlacementPolicy())


def test_a_million_chunk_writes_with_a_built_in_policy(zipf: Trace) -> None:
    result = elastripe.place(zipf, placement="sepbit", unit_size="64KiB", passes=50)
    assert result["user_chunks_written"] == 1_000_000 and result["cpu"]["chunk_writes_per_second"] > 0
    once = elastripe.place(zipf, placement="sepbit", unit_size="64KiB")
    assert result["gc_chunks_rewritten"] > 49 * once["gc_chunks_rewritten"]
