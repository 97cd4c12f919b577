"""The fixtures that the tests share: the bench of the environment file."""

import os
import signal
import sys
from pathlib import Path

import pytest
from bench import Bench


# The fixtures' ends switch the board off: a SIGTERM must not go past them.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@pytest.fixture(scope="session")
def options(env):
    return env.config.data.get("options", {})


@pytest.fixture(scope="session")
def bench(target, options):
    bench = Bench(target, options)
    yield bench
    bench.power_off()


@pytest.fixture(scope="session")
def board(bench):
    """The bench with its board on, and a shell on its console."""
    bench.power_on()
    bench.login()
    yield bench


@pytest.fixture(scope="session")
def out():
    """Where the results go."""
    return Path(os.environ["CONTIGO_HIL_OUT"])
