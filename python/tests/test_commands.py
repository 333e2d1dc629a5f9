"""The commands: options as on the command line, results as dicts and frames, progress, interruption,
errors."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import elastripe
from elastripe import Trace

SSD: Any = {"ssd": "was-ssd", "ssd_size": "16MiB", "prefill": True, "fill": True}


def test_a_simulation_over_files_and_over_memory_is_the_same(tmp_path: Path, zipf: Trace) -> None:
    path = tmp_path / "zipf.csv"
    zipf.save(path)
    options: Any = {"scheme": "eplog", "queue_depth": 8, "commit_every": 1000, **SSD}
    memory = elastripe.simulate(zipf, **options)
    file = elastripe.simulate(path, **options)
    assert memory["requests"] == 20_000 and memory["ssd_chunks_written"] > 20_000
    for key in memory.keys() - {"cpu", "provenance", "config"}:
        assert memory[key] == file[key], key
    assert memory["config"]["trace"]["hash"] == file["config"]["trace"]["hash"]
    command = file["provenance"]["command"]
    assert command.startswith(f"elastripe simulate --trace={path} --scheme=eplog --queue-depth=8 ")
    assert len(file["provenance"]["build"]) == 16 and file["provenance"]["trace_in_memory"] is None
    frame = memory.frame()
    assert frame.shape[0] == 1 and frame["virtual_seconds"].dtype == np.float64
    assert frame["config.queue_depth"].tolist() == [8]
    assert memory.devices()["role"].tolist().count("log") == 2 if "role" in memory.devices() else True
    assert len(memory.devices()) == len(memory["devices"]) == 10


def test_cells_are_rows(zipf: Trace) -> None:
    axes: Any = {"queue_depth": [1, 8], "untimed": [True, False]}
    result = elastripe.simulate(zipf, compare=["raid", "eplog"], sweep=axes, jobs=2, **SSD)
    frame = result.frame()
    assert len(frame) == 8 and frame["queue-depth"].tolist() == [1, 1, 1, 1, 8, 8, 8, 8]
    assert frame["scheme"].tolist() == ["raid", "eplog"] * 4
    one = elastripe.simulate(zipf, scheme="eplog", queue_depth=8, **SSD)
    row = frame[(frame["scheme"] == "eplog") & (frame["queue-depth"] == 8) & (frame["untimed"] == "off")]
    for key in ("erases", "ssd_chunks_written", "write_amplification"):
        assert row[key].tolist() == [one[key]], key


def test_a_replay_counts_and_verifies(zipf: Trace) -> None:
    counted = elastripe.replay(zipf, device="null", geometry="6+2", scheme="raid", fill=True, queue_depth=1)
    assert counted["totals"]["data_chunks_written"] == 20_000
    verified = elastripe.replay(zipf[:500], device="memory", verify=True)
    assert verified["verify"]["mismatches"] == 0 and verified["verify"]["sectors_checked"] > 0
    with pytest.raises(elastripe.Error, match="name the members of an array"):
        elastripe.replay(zipf)
    with pytest.raises(elastripe.Error, match="none.img"):
        elastripe.replay(zipf, members=["/nowhere/none.img"])


def test_an_ssd_alone_is_written_by_patterns_and_traces(tmp_path: Path, zipf: Trace) -> None:
    options: Any = {"logical_size": "8MiB", "pages_per_block": 32, "spare": 1.2, "gc": "greedy"}
    uniform = elastripe.flash("uniform", warmup=1, drive_writes=2, seed=5, check=True, **options)
    assert uniform["host_pages_written"] == 2 * 2048 and uniform["write_amplification"] > 1.5
    again = elastripe.flash("uniform", warmup=1, drive_writes=2, seed=5, **options)
    assert again["erases"] == uniform["erases"]
    traced = elastripe.flash(zipf, warmup=1, drive_writes=2, **options)
    assert traced["host_pages_written"] == 2 * 2048 and traced["workload"] == "./zipf:0.99"
    zipf.save(tmp_path / "zipf.csv")
    from_file = elastripe.flash(tmp_path / "zipf.csv", warmup=1, drive_writes=2, **options)
    assert from_file["erases"] == traced["erases"] != uniform["erases"]
    assert "was-ssd" in [preset["name"] for preset in elastripe.presets()]


def test_reliability_has_a_row_for_each_array() -> None:
    result = elastripe.reliability(geometry=["7+1", "6+2"], afr="1%", rebuild_rate=100_000_000, trials=0)
    frame = result.frame()
    assert frame["geometry"].tolist() == ["7+1", "6+2"]
    mttdl = frame["mttdl_years_closed_form"].tolist()
    assert mttdl[1] > 1000 * mttdl[0] > 0
    by_text = elastripe.reliability(geometry="7+1,6+2", afr="1%", rebuild_rate="100MB/s", trials=0)
    assert by_text["rows"] == result["rows"]
    by_time = elastripe.reliability(geometry="7+1", afr=0.01, repair_time=timedelta(hours=2), trials=200)
    assert by_time["rows"][0]["monte_carlo"]["loss_probability"] > 0


def test_sizes_and_rates_are_bytes_if_they_are_numbers(zipf: Trace) -> None:
    rebuilt: Any = {"geometry": "7+1", "afr": 0.01, "trials": 0}
    rows = elastripe.reliability(rebuild_rate="100MB/s", **rebuilt)["rows"]
    assert elastripe.reliability(rebuild_rate=1e8, **rebuilt)["rows"] == rows
    assert elastripe.reliability(rebuild_rate=np.float64(1e8), **rebuilt)["rows"] == rows
    with pytest.raises(elastripe.OptionError, match="rebuild_rate: found 0.5, expected whole bytes"):
        elastripe.reliability(rebuild_rate=0.5, **rebuilt)
    with pytest.raises(elastripe.OptionError, match="rebuild_rate: found nan, expected whole bytes"):
        elastripe.reliability(rebuild_rate=float("nan"), **rebuilt)
    time: Any = np.timedelta64(2, "h")
    by_time = elastripe.reliability(repair_time=time, **rebuilt)
    assert by_time["rows"] == elastripe.reliability(repair_time=timedelta(hours=2), **rebuilt)["rows"]


def test_options_are_those_of_the_command_line(zipf: Trace) -> None:
    with pytest.raises(
        elastripe.OptionError, match="simulate: found the option 'depth', expected one of .*queue_depth"
    ):
        elastripe.simulate(zipf, depth=1)  # type: ignore[call-arg]
    with pytest.raises(elastripe.OptionError, match="invalid value '0' for '--queue-depth"):
        elastripe.simulate(zipf, queue_depth=0)
    with pytest.raises(
        elastripe.OptionError, match='chunk.size.*found "4096", expected a size with its unit'
    ):
        elastripe.simulate(zipf, chunk_size="4096")
    with pytest.raises(elastripe.OptionError, match="value is required"):
        elastripe.simulate(zipf, geometry=True)  # type: ignore[arg-type]
    with pytest.raises(elastripe.OptionError, match="geometry: found 2 values"):
        elastripe.simulate(zipf, geometry=["6+2", "7+1"])  # type: ignore[arg-type]
    with pytest.raises(elastripe.OptionError, match="no trace is named"):
        elastripe.simulate()
    for axis in ({"scheme": "raid"}, {"queue_depth": 8}, 8, [8]):
        with pytest.raises(elastripe.OptionError, match="sweep: found .*, expected a"):
            elastripe.simulate(zipf, sweep=axis)  # type: ignore[arg-type]
    with pytest.raises(elastripe.OptionError, match="sweep: found 'depth'"):
        elastripe.simulate(zipf, sweep={"depth": [1]})
    with pytest.raises(elastripe.OptionError, match="queue_depth: found {}, expected a string"):
        elastripe.simulate(zipf, queue_depth={})  # type: ignore[arg-type]
    # The product's own words for what makes no sense together.
    with pytest.raises(elastripe.Error, match="--commit-every 5: scheme raid"):
        elastripe.simulate(zipf, scheme="raid", commit_every=5)
    assert elastripe.option_help("simulate")["queue_depth"].startswith("Requests in flight at most")
    for command in (
        elastripe.simulate,
        elastripe.place,
        elastripe.replay,
        elastripe.flash,
        elastripe.reliability,
    ):
        documented = command.__doc__ or ""
        for name in elastripe.option_help(command.__name__).keys() - {"trace", "workload"}:
            assert f"    {name}" in documented, (command, name)


def test_progress_is_told_in_order(zipf: Trace) -> None:
    told: list[tuple[str, int, int]] = []
    thread = threading.get_ident()

    def tell(what: str, done: int, total: int) -> None:
        assert threading.get_ident() == thread
        told.append((what, done, total))

    elastripe.simulate(zipf, progress=tell, **SSD)
    assert told[-1] == ("simulate", 20_000, 20_000)
    done = [done for what, done, _ in told if what == "simulate"]
    assert done == sorted(done)


def test_what_the_callback_raises_stops_the_run(zipf: Trace) -> None:
    error = RuntimeError("enough")

    def tell(what: str, done: int, total: int) -> None:
        raise error

    begun = time.monotonic()
    with pytest.raises(RuntimeError) as raised:
        elastripe.place(zipf, passes=1_000_000, progress=tell)
    assert raised.value is error and time.monotonic() - begun < 60


def test_ctrl_c_stops_a_long_run(zipf: Trace) -> None:
    # Each would take hours.
    long: list[Any] = [
        lambda: elastripe.place(zipf, passes=1_000_000_000),
        lambda: elastripe.simulate(
            zipf, timed=True, speed=0.000001, sweep={"seed": list(range(2_000))}, **SSD
        ),
        lambda: elastripe.flash(
            "uniform", logical_size="64MiB", pages_per_block=64, spare=1.1, drive_writes=900_000
        ),
        lambda: elastripe.reliability(trials=4_000_000_000),
    ]
    for run in long:
        timer = threading.Timer(0.5, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run()
        timer.join()


def test_other_threads_go_on_while_a_run_runs(zipf: Trace) -> None:
    ended = threading.Event()
    turns = 0

    def count() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            time.sleep(0)

    other = threading.Thread(target=count)
    other.start()
    try:
        elastripe.place(zipf, placement="sepbit", unit_size="64KiB", passes=20)
    finally:
        ended.set()
        other.join()
    assert turns > 10


def test_bars_are_shown_only_when_they_are_asked_for(zipf: Trace, capfd: pytest.CaptureFixture[str]) -> None:
    elastripe.place(zipf, passes=30)
    assert capfd.readouterr() == ("", "")
    elastripe.place(zipf, passes=30, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "place" in err


def test_a_result_is_a_dict(zipf: Trace) -> None:
    result = elastripe.place(zipf)
    assert isinstance(result, dict) and isinstance(result.frame(), pandas.DataFrame)
    assert result["write_amplification"] == 1 + result["gc_chunks_rewritten"] / result["user_chunks_written"]
    assert result["config"]["trace"]["synthetic"] == zipf.synthetic
    assert result["version"] in elastripe.__version__


def test_the_example_runs() -> None:
    example = Path(__file__).resolve().parent.parent / "examples" / "sepbit.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True)
    own, ours = done.stdout.splitlines()
    assert own.split(":")[-1].split(",")[:2] == ours.split(":")[-1].split(",")[:2]
