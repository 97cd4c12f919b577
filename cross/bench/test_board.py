"""The board: power, console, files, the board tests, their report, a reset after a hang. They are
the same on silicon and in the lab, and run in this order."""

import json
import os
import random
import shlex
import subprocess
import time
from pathlib import Path

import pytest

# Bytes that show a line that drops, repeats or translates some.
PATTERN = random.Random(1).randbytes(3072)
# A busy emulator takes some seconds from the call to the last word of a hanging program.
HANG_S = 5


def test_power_on_and_a_shell(board):
    release = board.check("uname -r")[-1]
    assert release, "uname says nothing"


def test_a_file_arrives_whole_and_comes_back(board):
    place = f"{board.folder}/pattern"
    board.put(PATTERN, place)
    assert board.get(place) == PATTERN


@pytest.fixture(scope="session")
def program(board):
    """The board tests, on the board."""
    if board.programs == "in the image":
        return "contigo-board-tests"
    local = Path(os.environ["CONTIGO_BOARD_TESTS"])
    place = f"{board.folder}/contigo-board-tests"
    board.put(local.read_bytes(), place)
    board.check(f"chmod +x {shlex.quote(place)}")
    return place


@pytest.fixture(scope="session")
def result(board, program, out):
    """The report of the board tests, which is kept as `result.json`."""
    # A board without a battery begins in 1970.
    board.run(f"{board.root} date -s @{int(time.time())}")
    place = f"{board.folder}/result.json"
    arguments = " ".join(shlex.quote(word) for word in board.arguments)
    # A file of an earlier run would be taken for this one's.
    board.check(f"mkdir -p {board.folder} && {board.root} rm -f {place}")
    command = f"{board.root} {program} {arguments} --report {place}"
    lines, status = board.run(command, limit_s=board.run_s)
    (out / "board-tests.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines_of_end = "\n".join(lines[-20:])
    assert status in (0, 1), f"the board tests ended with {status}:\n{lines_of_end}"
    kept = out / "result.json"
    kept.write_bytes(board.get(place))
    return json.loads(kept.read_text(encoding="utf-8"))


def test_no_row_of_the_board_tests_fails(result, record_property):
    for key, value in result["counts"].items():
        record_property(key, value)
    failed = [f"{row['name']}: {row['reason']}" for row in result["rows"] if row["status"] == "failed"]
    assert not failed, "\n".join(failed)
    assert result["counts"]["passed"] > 0, "no row has passed"


def test_the_report_makes_sense(result, out, options):
    checker = os.environ["CONTIGO_RESULTS"]
    emulated = ["--emulated"] if options.get("emulated") else []
    ran = subprocess.run([checker, *emulated, str(out / "result.json")], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert bool(result["emulated"]) == bool(options.get("emulated")), result["emulated"]


def test_latencies_by_interrupt_and_polled(result, record_property):
    assert result["latency"], result["missing"].get("latency")
    modes = {latency["mode"] for latency in result["latency"]}
    assert modes == {"polled", "interrupt"}, f"only {modes} were measured; the rows say why"
    for latency in result["latency"]:
        figures = {key: latency[key] for key in ("n", "p50_ns", "p99_ns", "max_ns")}
        record_property(f"{latency['engine']} {latency['mode']}", json.dumps(figures))


def test_a_reset_after_a_hang(board, program):
    before = board.boot_id()
    board.check("sync")
    # It prints a line, waits a second, and takes every processor for itself.
    board.console.sendline(f"{board.root} {program} hang --until-reset")
    time.sleep(HANG_S)
    assert not board.answers(), "the board still answers, so that its hang proves nothing"
    board.reset(before)
    assert board.check("echo back")[-1] == "back"
