"""The progress that commands display on a terminal."""

from __future__ import annotations

import io

import pytest

from zarrfs.cli.progress import MAX_WORKERS, progress_bar, worker_lines
from zarrfs.tools.copying.cluster.results import WorkerStatistics


def statistics(count: int = 1) -> dict[str, WorkerStatistics]:
    return {f"tcp://host:{n}": WorkerStatistics(3, 6 << 20, 1, 5.0, 2.0) for n in range(count)}


def test_a_line_of_a_worker_has_its_tasks_bytes_and_rate() -> None:
    assert list(worker_lines(statistics())) == [
        "worker tcp://host:0: 3 tasks, 6.0 MiB in 2.0 s, 3.0 MiB per second"
    ]


@pytest.mark.parametrize("count", [1, MAX_WORKERS + 5])
def test_a_terminal_shows_the_throughput_of_workers_during_a_run(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar() as progress:
        progress.show("/a", 1, 2)
        progress.show_workers(statistics(count))
    text = terminal.getvalue()
    assert "worker tcp://host:0: 3 tasks, 6.0 MiB in 2.0 s, 3.0 MiB per second" in text
    assert ("and 5 more workers" in text) == (count > MAX_WORKERS)
    assert f"tcp://host:{count}:" not in text


def test_without_a_terminal_no_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        progress.show("/a", 1, 2)
        progress.show_workers(statistics())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("resume", "message"),
    [
        ("with --resume", "zarrfs: interrupted; run the same command with --resume to continue\n"),
        (None, "zarrfs: interrupted\n"),
    ],
)
def test_only_commands_that_can_be_continued_say_how(
    resume: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), progress_bar(resume):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == message


def test_the_rate_of_a_worker_is_that_since_its_first_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of the worker run the tasks, which overlap."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    worker = WorkerStatistics()
    worker.add(2, 1000.0, 4.0)
    now = 102.0
    worker.add(1, 500.0, 5.0)
    assert (worker.tasks, worker.busy_seconds, worker.seconds, worker.rate) == (3, 9.0, 6.0, 250.0)
