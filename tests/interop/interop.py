"""Contigo's memory in real frameworks: whose pointer do they see, and is anything copied?

A test may return rows of the table: framework, direction, alignment, same pointer, bytes copied.
Run by tests/interop/run, which passes on words: only the tests whose names have one of them are
run, or all where there is none.
"""

import json
import sys

import cores
import counted
import documents
import door
import forked
import frameworks
import handovers
import in_flight
import jobs
import kernels
import loaded
import memory
import overlays
import simulations
import wheels
from common import Skipped, by_own_build, tests_of


def own_build(name, output, *runs):
    """A test of programs of this folder with the build of `own/`: a camera with faults, which the
    package does not have, and debug assertions. Each run has `output` in what it prints."""

    def test():
        for run in runs:
            assert output in by_own_build(*run), run

    test.__name__ = name
    return test


MODULES = [memory, handovers, door, jobs, cores, in_flight, kernels, simulations, overlays, loaded, forked, frameworks, counted, documents, wheels]
TESTS = [
    *(test for module in MODULES for test in tests_of(vars(module))),
    own_build("a_channel_that_fails_loses_nothing", " channels\n", ["channels.py"]),
    own_build("a_loop_that_is_left_loses_nothing", " loops\n", ["loops.py"]),
    own_build("a_queue_gives_the_ends_of_its_own_jobs", " ends\n", ["ends.py"]),
    own_build("a_stream_keeps_the_runtime_s_rules", " rules\n", ["frames.py"]),
    own_build("no_refusal_waits_for_a_destructor", " refusals\n", ["locks.py", "alone"]),
    own_build("threads_that_are_refused_all_go_on", " calls in ", ["locks.py", "threads", "3"], ["locks.py", "mixed", "5"]),
]


def main():
    as_json = "--json" in sys.argv[1:]
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    tests = [test for test in TESTS if not words or any(word in test.__name__ for word in words)]
    table, failed, skipped = [], 0, 0
    for test in tests:
        try:
            rows = test() or []
            wrong = [row for row in rows if row[3] is False or row[4] != 0]
            assert not wrong, f"another pointer, or a copy: {wrong}"
            table += rows
        except Skipped as why:
            skipped += 1
            print(f"SKIPPED: {test.__name__}: {why}", file=sys.stderr)
        except Exception as error:  # every test is run, whatever became of the one before
            failed += 1
            print(f"FAILED: {test.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
    names = ["framework", "direction", "alignment", "same pointer", "bytes copied"]
    if as_json:
        print(json.dumps([dict(zip(names, row)) for row in table], indent=1))
    else:
        cells = [names] + [[str(value) for value in row] for row in table]
        widths = [max(len(row[column]) for row in cells) for column in range(5)]
        for row in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    passed = len(tests) - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
