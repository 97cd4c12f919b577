"""The fixtures that the tests share: the bench of the environment file."""

import os
from pathlib import Path

import pytest
from bench import Bench


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
