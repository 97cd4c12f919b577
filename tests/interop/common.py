"""What all tests of tests/interop use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def refused(error, call, *words):
    """`call` must raise `error`, with these words."""
    try:
        call()
    except error as raised:
        missing = [word for word in words if word not in str(raised)]
        assert not missing, f"{raised!r} lacks {missing}"
        return str(raised)
    raise AssertionError(f"not refused: {call}")


class Skipped(Exception):
    """What a test needs is not here; why."""
