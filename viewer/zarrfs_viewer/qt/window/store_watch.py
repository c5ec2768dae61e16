"""Noticing that the displayed data were changed, moved or deleted by other programs."""

from __future__ import annotations

from time import monotonic

from PyQt6.QtCore import QObject, QTimer
from PyQt6.QtWidgets import QWidget

from zarrfs.credentials import hide_credentials
from zarrfs_viewer.images.stored_documents import Change, StoredDocuments
from zarrfs_viewer.qt.session import Session

__all__ = ["StoreWatch"]

LOCAL_SECONDS, REMOTE_SECONDS = 3.0, 20.0
"""The minimum time between two comparisons with the store: a few look-ups of files, or as many requests."""

TEXTS: dict[Change, str] = {
    "changed": (
        "Changed in the store after it was opened; Ctrl+F5 ('Reload from the store' in the menu File) displays it as "
        "it is now. Until then, what is displayed may be partly old and partly new: {name}"
    ),
    "missing": (
        "Moved or deleted after it was opened; only what is in memory is displayed. Open it where it is now. If it was "
        "replaced, Ctrl+F5 ('Reload from the store' in the menu File) displays the new one: {name}"
    ),
}


class StoreWatch(QObject):
    """Compares the displayed data with their store while the window is active, and when it becomes active.

    The comparison runs on a worker thread. A change is reported once; an image that is displayed afterwards, for
    example after a reload, is compared anew. Errors are not reported: reading the data reports them.
    """

    def __init__(self, session: Session, window: QWidget) -> None:
        super().__init__(window)
        self._session = session
        self._window = window
        self._documents: StoredDocuments | None = None
        self._reported: Change | None = None
        self._text = ""
        self._is_running = False
        self._last = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.compare)
        session.dataset_changed.connect(self.restart)
        session.image_changed.connect(self.restart)

    def stop(self) -> None:
        """Stop comparing."""
        self._timer.stop()
        self._documents = None

    def restart(self) -> None:
        """Compare what is displayed now with itself, as it is from now on."""
        dataset = self._session.dataset
        self._reported, self._text = None, ""
        self._timer.stop()
        self._documents = None
        if dataset is None:
            return
        self._documents = StoredDocuments(dataset, self._session.image)
        seconds = REMOTE_SECONDS if self._documents.is_remote else LOCAL_SECONDS
        self._timer.start(round(1000 * seconds))
        self._compare(self._documents)

    def compare(self) -> None:
        """Compare with the store, unless the window is not active or the last comparison is recent. Call it when the
        window becomes active.
        """
        documents = self._documents
        if documents is None or not self._window.isActiveWindow() or self._is_running:
            return
        seconds = REMOTE_SECONDS if documents.is_remote else LOCAL_SECONDS
        if monotonic() - self._last >= 0.9 * seconds:
            self._compare(documents)

    def _compare(self, documents: StoredDocuments) -> None:
        self._is_running, self._last = True, monotonic()

        def done(change: Change | None) -> None:
            self._is_running = False
            if documents is self._documents:
                self._report(change)

        def failed(error: Exception) -> None:
            self._is_running = False

        self._session.worker.submit(documents.find_change, done, failed, "", low_priority=True)

    def _report(self, change: Change | None) -> None:
        dataset = self._session.dataset
        if change == self._reported or dataset is None:
            return
        self._reported = change
        if change is None:
            self._session.withdraw_message(self._text)
            return
        self._text = TEXTS[change].format(name=hide_credentials(dataset.location))
        self._session.show_message(self._text, True)
