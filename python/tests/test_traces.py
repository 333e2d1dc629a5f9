"""Traces as NumPy arrays: what is read, generated, made and written is the same requests."""

from __future__ import annotations

import copy
import gzip
import pickle
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import elastripe
from elastripe import REQUEST, Op, Trace

ROWS = [(0, "R", 0, 4096), (5, "W", 8192, 512), (9, "F", 0, 0), (10, "T", 4096, 4096)]


def test_the_dtype_is_documented_and_aligned() -> None:
    assert REQUEST.itemsize == 32
    assert REQUEST.names == ("time_us", "device", "op", "offset_bytes", "length_bytes")
    assert [REQUEST[name].str for name in REQUEST.names] == ["<u8", "<u4", "|u1", "<u8", "<u8"]


def test_generated_traces_are_repeatable_and_say_that_they_are_synthetic(zipf: Trace) -> None:
    again = elastripe.generate("zipf:0.99", requests=20_000, range=8 << 20, seed=3)
    other = elastripe.generate("zipf:0.99", requests=20_000, range="8MiB", seed=4)
    assert np.array_equal(zipf.requests, again.requests)
    assert not np.array_equal(zipf.requests, other.requests)
    assert len(zipf) == 20_000 and zipf.requests.dtype == REQUEST
    assert (zipf.op == Op.WRITE).all() and (zipf.length_bytes == 4096).all()
    assert int((zipf.offset_bytes + zipf.length_bytes).max()) <= 8 << 20
    assert zipf.offset_bytes.dtype == np.uint64 and zipf.device.dtype == np.uint32
    assert "zipf:0.99" in zipf.synthetic[0] and "seed 3" in repr(zipf)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zst"])
def test_what_is_saved_is_read_again(tmp_path: Path, zipf: Trace, name: str) -> None:
    path = tmp_path / name
    assert zipf.save(path) == (20_000, 0)
    read = elastripe.open_trace(path)
    assert np.array_equal(read.requests, zipf.requests)
    assert read.synthetic == zipf.synthetic and read.name == name
    with pytest.raises(elastripe.Error, match="exists"):
        zipf.save(path)
    zipf[:10].save(path, force=True)
    part = elastripe.open_trace(path)
    assert len(part) == 10
    # A part cannot be generated again from the label of the whole.
    assert part.synthetic == []
    assert zipf[:10].synthetic == [f"part of: {zipf.synthetic[0]}"]


def test_other_formats_say_what_they_leave_out(tmp_path: Path) -> None:
    trace = Trace(ROWS)
    assert trace.save(tmp_path / "t.spc", format="spc") == (2, 2)
    assert elastripe.open_trace(tmp_path / "t.spc").op.tolist() == [Op.READ, Op.WRITE]
    with pytest.raises(elastripe.Error, match="format"):
        trace.save(tmp_path / "t.bin", format="parquet")
    assert not (tmp_path / "t.bin").exists()


def test_traces_are_made_of_tuples_columns_and_frames() -> None:
    trace = Trace(ROWS, name="mine")
    assert trace.time_us.tolist() == [0, 5, 9, 10] and trace.op.tolist() == [0, 1, 2, 3]
    frame = trace.to_frame()
    assert frame["op"].tolist() == ["read", "write", "flush", "trim"]
    assert frame["offset_bytes"].dtype == np.uint64
    columns = np.zeros(2, [("op", "i8"), ("offset_bytes", "f8"), ("length_bytes", "u4")])
    columns["op"], columns["length_bytes"] = 1, 512
    assert Trace(columns).requests["length_bytes"].tolist() == [512, 512]
    assert np.array_equal(Trace(frame).requests, trace.requests)
    assert np.array_equal(Trace([(*row, 0) for row in ROWS]).requests, trace.requests)
    assert len(Trace([])) == 0 and "mine" in repr(trace)


def test_requests_cannot_be_changed_behind_a_traces_back() -> None:
    array = Trace(ROWS).requests.copy()
    trace = Trace(array)
    array["length_bytes"] = 1
    assert trace.length_bytes.tolist() == [4096, 512, 0, 4096]
    with pytest.raises(ValueError):
        trace.requests["op"] = 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, "X", 0, 512)], "expected R, W, F or T"),
        ([(0, 7, 0, 512)], "op: found 7"),
        ([(0, "W", -512, 512)], "offset_bytes: found -512"),
        ([(0, "W", 0.5, 512)], "offset_bytes: found float64 values"),
        ([(0, "W", 0)], "expected time_us, op"),
        ([(0, 0.5, 0, 512)], "op: found 0.5"),
        ([(0, -1, 0, 512)], "op: found -1"),
        ([(0, None, 0, 512)], "op: found None"),
        ([(0, "W", 1e20, 512)], "offset_bytes: found 1e.20, which is too large to be exact"),
        ([(0, "W", float("nan"), 512)], "offset_bytes: found float64 values"),
        ([(0, "W", 0, 1 << 64)], "length_bytes: found 18446744073709551616"),
        ([(0, "W", 0, -1), (0, "W", 0, 1 << 63)], "length_bytes: found -1"),
        ([(0, "W", 0, 512, 1 << 32)], "device: found a number above"),
    ],
)
def test_values_that_do_not_fit_are_refused(rows: list[tuple[object, ...]], words: str) -> None:
    with pytest.raises(elastripe.OptionError, match=words):
        Trace(rows)
    with pytest.raises(elastripe.OptionError, match="expected .'length_bytes'. too"):
        Trace(pandas.DataFrame({"op": ["R"], "offset_bytes": [0]}))


def test_large_numbers_beside_small_ones_are_not_rounded() -> None:
    offsets = [(1 << 63) + 1, 1]
    trace = Trace([(0, "W", offset, 512) for offset in offsets])
    assert trace.offset_bytes.tolist() == offsets


def test_what_is_no_trace_is_said_to_be_none(zipf: Trace) -> None:
    for given in (5, b"trace.csv", [1, 2]):
        with pytest.raises(elastripe.OptionError, match="trace: found .*, expected a Trace, paths"):
            elastripe.place(given)
    with pytest.raises(elastripe.OptionError, match="found 2 dimensions"):
        Trace(zipf.requests.reshape(2, -1))


@pytest.mark.parametrize("options", [{"requests": -1}, {"requests": 2.5}, {"seed": -1}, {"range": -4096}])
def test_counts_that_are_none_are_refused(options: Any) -> None:
    with pytest.raises(elastripe.OptionError, match="found -?[0-9.]+, expected a whole number from 0"):
        elastripe.generate("uniform", **options)


def test_copies_of_traces_cannot_be_changed_either(zipf: Trace) -> None:
    for other in (copy.copy(zipf), copy.deepcopy(zipf), pickle.loads(pickle.dumps(zipf))):
        assert np.array_equal(other.requests, zipf.requests) and other.synthetic == zipf.synthetic
        with pytest.raises(ValueError):
            other.requests["op"] = 0


def test_requests_that_no_reader_gives_are_refused_by_name() -> None:
    huge = Trace([(0, "W", 0, 512), (0, "W", 1 << 63, 512)])
    with pytest.raises(elastripe.OptionError, match=r"request 1 \(from 0\): offset 9223372036854775808"):
        elastripe.place(huge)


def test_statistics_are_those_of_the_command() -> None:
    figures = Trace(ROWS).stats(chunk_size=4096)
    assert (figures["requests"], figures["writes"], figures["chunk_writes"]) == (4, 1, 1)
    assert figures["write_bytes"] == 512 and figures["duration_us"] == 10
    with pytest.raises(elastripe.Error):
        Trace(ROWS).stats(chunk_size="3KiB")
    with pytest.raises(elastripe.OptionError, match="expected a size with its unit"):
        Trace(ROWS).stats(chunk_size="4096")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(elastripe.Error, match="none.csv: cannot open"):
        elastripe.open_trace(tmp_path / "none.csv")
    bad = tmp_path / "bad.csv"
    bad.write_text("ts_us,dev,op,offset,len\n0,0,W,0,512\nnonsense\n")
    with pytest.raises(elastripe.Error, match="bad.csv:3"):
        elastripe.open_trace(bad)
    trace = elastripe.open_trace(bad, skip_bad_lines=True)
    assert len(trace) == 1 and trace.bad_lines == 1


class Pairs(elastripe.TraceReader):
    """Lines of a block number and a count; each is a write."""

    def requests(self, path: str | PathLike[str]) -> Iterator[tuple[int, str, int, int]]:
        with gzip.open(path, "rt") as lines:
            for time, line in enumerate(lines):
                block, count = map(int, line.split())
                yield time, "W", 4096 * block, 4096 * count


def test_a_reader_of_ones_own_reads_wherever_a_trace_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(f"{(block * 37) % 900} 2\n" for block in range(3_000))
    trace = elastripe.open_trace(path, reader=Pairs())
    assert len(trace) == 3_000 and trace.name == "pairs.gz"
    elastripe.register_reader("pairs", Pairs())
    named = elastripe.open_trace(path, format="pairs")
    assert np.array_equal(named.requests, trace.requests)
    both = elastripe.open_trace([path, path], format="pairs")
    assert len(both) == 6_000 and int(both.time_us[-1]) == 2 * 2_999
    result = elastripe.place(path, format="pairs", unit_size="64KiB")
    assert result["user_chunks_written"] == 6_000
    assert result["provenance"]["trace_in_memory"] == "pairs.gz"
    with pytest.raises(elastripe.OptionError, match="a format of elastripe"):
        elastripe.register_reader("csv", Pairs())
    with pytest.raises(ValueError, match="invalid literal"):
        (tmp_path / "bad.gz").write_bytes(gzip.compress(b"a b\n"))
        elastripe.open_trace(tmp_path / "bad.gz", format="pairs")


class Times(elastripe.TraceReader):
    """Writes at the times that the lines say."""

    def requests(self, path: Any) -> Any:
        with open(path) as file:
            return [(int(line), "W", 0, 4096) for line in file]


def test_files_of_one_recording_have_one_clock(tmp_path: Path) -> None:
    day = 1_700_000_000_000_000

    def shown(*files: list[int]) -> list[int]:
        paths = [tmp_path / str(place) for place in range(len(files))]
        for path, times in zip(paths, files, strict=True):
            path.write_text("".join(f"{time}\n" for time in times))
        return [int(time) for time in elastripe.open_trace(paths, reader=Times()).time_us]

    # What lies before the first one does not wrap.
    assert shown([day + 5, day, day + 9]) == [0, 0, 4]
    assert shown([day, day + 100], [], [day + 98, day + 300]) == [0, 100, 98, 300]
    assert shown([0, 100], [0, 100], [40, 140, 39]) == [0, 100, 100, 200, 200, 300, 200]
    assert shown([0, 100], [day, day + 7]) == [0, 100, 100, 107]
