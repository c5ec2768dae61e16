"""Running a class of tests without pytest."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["run_tests"]


def run_tests(tests: object, run: Callable[[Callable[..., None]], object], failure: str) -> None:
    """Call ``run`` with each method of ``tests`` whose name begins with ``test_``.

    Raises ExceptionGroup with the message ``failure`` and the error of each test that has failed; the name of the test
    is a note of the error.
    """
    errors: list[Exception] = []
    for name in sorted(name for name in dir(tests) if name.startswith("test_")):
        try:
            run(getattr(tests, name))
        except Exception as error:
            error.add_note(f"in {type(tests).__name__}.{name}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(failure, errors)
