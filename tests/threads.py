"""Time and threads under the control of a test: a clock that it sets, and threads that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["Clock", "run_in_threads"]

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def run_in_threads(function: Callable[[Argument], Result], arguments: Iterable[Argument]) -> list[Result]:
    """Call ``function`` with each argument in a thread of its own. All threads begin together.

    Returns the results in the order of the arguments when all threads have ended. Raises the first error.
    """
    values = list(arguments)
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    begin = threading.Barrier(len(values))

    def run(number: int) -> None:
        begin.wait()
        try:
            results[number] = function(values[number])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(values))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(values))]
