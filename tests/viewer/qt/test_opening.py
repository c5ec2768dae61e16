"""Opening of several locations: order and completeness."""

from __future__ import annotations

import itertools
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication, QLabel, QSlider
from pytestqt.qtbot import QtBot
from zarrfs_viewer import url_credentials
from zarrfs_viewer.images.stored_documents import StoredDocuments
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window import store_watch
from zarrfs_viewer.qt.window.credentials_dialog import CredentialsDialog
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
import zarrfs.files.recognition as foreign
from tests.engine.stores.servers import web_server
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import StoreError
from zarrfs.testing.stores import ObservedStore


class BlockedStore(ObservedStore):
    """A store whose reads block until ``unblock`` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(LocalStore(path))
        self.unblock = threading.Event()

    def _before(self, operation: str, key: str) -> None:
        self.unblock.wait()


@pytest.fixture
def locations(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.zarr" for name in "abc"]
    for number, path in enumerate(paths):
        zarrfs.create_array(path, data=np.full((16, 16), number, "u1"))
    return paths


def top_names(window: MainWindow) -> list[str]:
    model = window.panel(Hierarchy).tree.model
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_several_locations_are_listed_in_the_order_given_and_the_last_is_displayed(
    qtbot: QtBot, window: MainWindow, locations: list[Path]
) -> None:
    slow = BlockedStore(locations[0])
    try:
        window.open_location(slow)
        for path in locations[1:]:
            window.open_location(str(path))
        qtbot.waitUntil(lambda: len(top_names(window)) == 2, timeout=TIMEOUT_MILLISECONDS)
        qtbot.waitUntil(lambda: window.image is not None, timeout=TIMEOUT_MILLISECONDS)
        shown = window.dataset
        assert shown is not None
    finally:
        slow.unblock.set()
    qtbot.waitUntil(lambda: len(top_names(window)) == 3, timeout=TIMEOUT_MILLISECONDS)
    assert top_names(window) == ["a.zarr", "b.zarr", "c.zarr"]
    assert window.dataset is shown, "a location that was requested earlier replaced the image"
    assert window.dataset.location == str(locations[2])


def test_a_location_that_cannot_be_opened_does_not_prevent_the_others(
    qtbot: QtBot, window: MainWindow, locations: list[Path], tmp_path: Path
) -> None:
    for path in (locations[0], tmp_path / "missing.zarr", locations[1]):
        window.open_location(str(path))
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    assert top_names(window) == ["a.zarr", "b.zarr"]
    assert window.dataset is not None
    assert window.dataset.location == str(locations[1])
    qtbot.waitUntil(lambda: window.image is not None, timeout=TIMEOUT_MILLISECONDS)
    assert "missing.zarr" in window.notice.text(), "the image of another location removed the message"
    assert window.notice.isVisible()
    window.open_location(str(locations[2]))
    qtbot.waitUntil(lambda: window.notice.text() == "", timeout=TIMEOUT_MILLISECONDS)


def test_the_credentials_dialog_has_the_fields_of_the_protocol(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: dict[str, str] = {}
    module = SimpleNamespace(set_password=lambda service, name, password: stored.update({name: password}))
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setattr(url_credentials, "_known", {})

    def fill(dialog: CredentialsDialog) -> bool:
        accept = dialog.buttons.button(dialog.buttons.StandardButton.Ok)
        assert accept is not None
        assert not accept.isEnabled()
        dialog.url.setText("https://host/a.zarr")
        assert list(dialog.fields) == ["user", "password", "token"]
        dialog.url.setText("s3://bucket/a.zarr")
        assert list(dialog.fields) == ["key", "secret", "token", "endpoint_url"]
        assert accept.isEnabled()
        dialog.fields["key"].setText("k")
        dialog.fields["secret"].setText("very secret")
        assert "very" not in dialog.fields["secret"].displayText()
        return True

    monkeypatch.setattr(CredentialsDialog, "exec", fill)
    window.actions_by_name["credentials"].trigger()
    qtbot.waitUntil(lambda: "s3://bucket are used" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert url_credentials.find_options("s3://bucket/b.zarr") == {"key": "k", "secret": "very secret"}
    assert "very secret" in stored["s3://bucket"]
    assert "very secret" not in window.notice.text()


def test_the_credentials_dialog_has_the_url_that_was_refused(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.session.requested = "https://me:very-secret@host/a.zarr"

    def look(dialog: CredentialsDialog) -> bool:
        dialog.show()
        qtbot.waitExposed(dialog)
        assert dialog.url.text() == "https://host/a.zarr"
        chain = [*dialog.fields.values(), dialog.in_keyring]
        for widget in chain:
            assert dialog.focusWidget() is widget, widget.accessibleName()
            QTest.keyClick(widget, Qt.Key.Key_Tab)
        hint = next(label for label in dialog.findChildren(QLabel) if label.wordWrap())
        assert hint.height() >= hint.heightForWidth(hint.width()), "the hint is cut off"
        dialog.url.setText("s3://bucket")
        qtbot.waitUntil(
            lambda: hint.height() >= hint.heightForWidth(hint.width()), timeout=TIMEOUT_MILLISECONDS
        )
        return False

    monkeypatch.setattr(CredentialsDialog, "exec", look)
    window.actions_by_name["credentials"].trigger()


@pytest.mark.parametrize("has_keyring", [False, True])
def test_a_refused_location_is_opened_again_with_its_credentials(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch, has_keyring: bool
) -> None:
    def set_password(*_: str) -> None:
        if not has_keyring:
            raise RuntimeError("no back end")

    class NoCredentialsError(Exception):
        """The class of botocore."""

    def refuse(location: str, path: str) -> None:
        raise StoreError(f"{location} cannot be read") from NoCredentialsError()

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(set_password=set_password))
    monkeypatch.setattr(url_credentials, "_known", {"s3://bucket": None, "s3://other": None})
    monkeypatch.setattr(foreign, "open_node", refuse)
    with qtbot.waitSignal(window.failed, timeout=TIMEOUT_MILLISECONDS) as failed:
        window.open_location("s3://bucket/a.zarr")
    assert "'Credentials of a URL'" in failed.args[0]
    opened: list[str] = []
    monkeypatch.setattr(window.session, "open_location", opened.append)
    window.opener.use_credentials("s3://other", {"key": "k"}, in_keyring=False)
    qtbot.waitUntil(lambda: "Open its locations again" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert opened == []
    window.opener.use_credentials("s3://bucket", {"key": "k"}, in_keyring=True)
    expected = "s3://bucket are used." if has_keyring else "the keyring cannot store"
    qtbot.waitUntil(lambda: expected in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert opened == ["s3://bucket/a.zarr"]
    assert url_credentials.find_options("s3://bucket/a.zarr") == {"key": "k"}


def test_a_location_that_does_not_answer_is_named(
    qtbot: QtBot, window: MainWindow, locations: list[Path]
) -> None:
    slow = BlockedStore(locations[0])
    try:
        window.open_location(slow)
        qtbot.waitUntil(lambda: "Opening" in window.status.position.text(), timeout=TIMEOUT_MILLISECONDS)
        assert "a.zarr" in window.status.position.text()
        window.status.show_opening(["https://me:very-secret@host/a.zarr"])
        assert "host/a.zarr" in window.status.position.text()
        assert "very-secret" not in window.status.position.text()
    finally:
        slow.unblock.set()
    qtbot.waitUntil(lambda: not window.status.position.text(), timeout=TIMEOUT_MILLISECONDS)
    window.open_location(str(locations[0] / "missing"))
    qtbot.waitUntil(lambda: bool(window.notice.text()), timeout=TIMEOUT_MILLISECONDS)
    assert not window.status.position.text()


@pytest.fixture(params=["local", "http"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory for data, and its location: the directory, or the URL of a server for it."""
    root = tmp_path / "served"
    root.mkdir()
    if request.param == "local":
        yield root, str(root)
        return
    with web_server(root) as server:
        yield root, server.url


def make_stack(path: Path, planes: int, value: int) -> None:
    data = np.full((planes, 40, 40), value, "u1")
    zarrfs.create_array(path, "image", data=data, chunks=(1, 40, 40), overwrite=True)


def open_stack(qtbot: QtBot, window: MainWindow, location: str) -> None:
    """Open a stack, and change its contrast and its position."""
    wait_until_opened(qtbot, window, lambda: window.open_location(location))
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0, 9)))
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 5))


def shown_values(window: MainWindow) -> list[object]:
    shown = window.panes.main.values_at(3, 3)
    assert shown is not None
    return [value for _, value in shown.values]


@pytest.mark.parametrize(
    ("planes", "position"), [(9, 5), (6, 5), (5, 4)], ids=["grown", "replaced", "shorter"]
)
def test_an_array_that_was_changed_is_reloaded_with_its_settings(
    qtbot: QtBot, window: MainWindow, served: tuple[Path, str], planes: int, position: int
) -> None:
    path, location = served[0] / "a.zarr", f"{served[1]}/a.zarr"
    zarrfs.create_group(path)
    make_stack(path, 6, 3)
    open_stack(qtbot, window, f"{location}/image")
    make_stack(path, planes, 6)
    wait_until_opened(qtbot, window, window.actions_by_name["reload"].trigger)
    assert window.image is not None
    assert window.image.shape == (planes, 40, 40)
    slider = window.panel(Position).dimensions.focus_order()[0]
    assert isinstance(slider, QSlider)
    assert slider.maximum() == planes - 1
    assert window.display_settings is not None
    assert window.display_settings.position[0] == position
    assert window.display_settings.channels[0].limits == (0, 9)
    assert shown_values(window) == [6]
    assert window.panel(Hierarchy).tree.model.rowCount() == 1


@pytest.mark.parametrize("whole", [True, False], ids=["store", "array"])
def test_the_reload_of_what_was_deleted_is_refused_and_keeps_the_picture(
    qtbot: QtBot, window: MainWindow, served: tuple[Path, str], whole: bool
) -> None:
    path, location = served[0] / "a.zarr", f"{served[1]}/a.zarr"
    zarrfs.create_group(path)
    make_stack(path, 6, 3)
    open_stack(qtbot, window, f"{location}/image")
    shutil.rmtree(path if whole else path / "image")
    with qtbot.waitSignal(window.failed, timeout=TIMEOUT_MILLISECONDS):
        window.actions_by_name["reload"].trigger()
    assert "a.zarr" in window.notice.text()
    assert any(reason in window.notice.text() for reason in ("no such file", "does not exist", "no Zarr"))
    assert window.image is not None
    assert shown_values(window) == [3]


def test_a_change_by_another_program_is_noticed_once(
    qtbot: QtBot, window: MainWindow, served: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = served[0] / "a.zarr"
    zarrfs.create_group(path)
    make_stack(path, 6, 3)
    open_stack(qtbot, window, f"{served[1]}/a.zarr/image")
    watch = window.store_watch
    monkeypatch.setattr(window, "isActiveWindow", lambda: True)
    times = itertools.count(1e9, 60.0)
    monkeypatch.setattr(store_watch, "monotonic", lambda: next(times))

    def compare() -> str:
        qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
        QApplication.sendEvent(window, QEvent(QEvent.Type.ActivationChange))
        qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
        return window.notice.text()

    assert compare() == ""
    make_stack(path, 7, 3)
    assert "Changed in the store" in compare()
    window.session.show_message("")
    make_stack(path, 8, 3)
    assert compare() == "", "the same change was reported twice"
    moved = path.rename(served[0] / "b.zarr")
    assert "Moved or deleted" in compare()
    moved.rename(path)
    assert "Changed in the store" in compare()
    wait_until_opened(qtbot, window, window.actions_by_name["reload"].trigger)
    assert compare() == ""
    watch.stop()
    make_stack(path, 9, 3)
    assert compare() == ""


def test_a_store_is_compared_at_intervals_while_the_window_is_active(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e6]
    compared: list[float] = []
    monkeypatch.setattr(store_watch, "monotonic", lambda: now[0])
    monkeypatch.setattr(StoredDocuments, "find_change", lambda documents: compared.append(now[0]))
    monkeypatch.setattr(window, "isActiveWindow", lambda: is_active[0])
    is_active = [True]
    make_stack(tmp_path / "a.zarr", 6, 3)
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "a.zarr" / "image")))
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    compared.clear()
    for seconds, active in ((1, True), (4, True), (5, True), (9, False), (10, True)):
        now[0], is_active[0] = 1e6 + seconds, active
        window.store_watch.compare()
        qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    assert compared == [1e6 + 4, 1e6 + 10]
