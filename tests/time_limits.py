"""A pytest plugin: the process ends, with the stacks of all threads, if a test continues after its time limit.

At the time limit pytest-timeout raises an exception in the test, once. A state machine of hypothesis then runs the
operation that hangs again, to reproduce the failure, and the run would never end. pytest-xdist reports a process that
has ended as the failure of its test and continues with another process.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator

import pytest

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_protocol", "pytest_unconfigure"]

GRACE = "timeout_grace"
STANDARD_ERROR = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(GRACE, "seconds between the time limit of a test and the end of the process", default="60")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STANDARD_ERROR] = os.dup(2)  # The output of tests is captured later.


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[STANDARD_ERROR])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    limit = _time_limit(item)
    if not limit:
        return (yield)
    grace = float(item.config.getini(GRACE))
    faulthandler.dump_traceback_later(limit + grace, exit=True, file=item.config.stash[STANDARD_ERROR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _time_limit(item: pytest.Item) -> float:
    """Return the time limit of a test as pytest-timeout determines it: marker, option, setting. 0: there is none."""
    marker = item.get_closest_marker("timeout")
    if marker is not None and marker.args:
        return float(marker.args[0])
    option = item.config.getoption("timeout", None)
    return float((item.config.getini("timeout") or 0) if option is None else option)
