"""Opening locations from dialogs, the clipboard, dropped files and the list of recent locations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from PyQt6.QtCore import QObject, QSettings
from PyQt6.QtGui import QGuiApplication
from PyQt6.QtWidgets import QInputDialog, QMenu, QWidget

from zarrfs.credentials import hide_credentials
from zarrfs.errors import ZarrError
from zarrfs_viewer.locations import parse_locations
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.file_dialogs import ask_folder, ask_open_files
from zarrfs_viewer.qt.support.plain_text import button_text, plain
from zarrfs_viewer.qt.window.credentials_dialog import CredentialsDialog
from zarrfs_viewer.qt.window.recent import RecentLocations
from zarrfs_viewer.url_credentials import forget, origin_of, remember

__all__ = ["LocationOpener"]

LOCATION_WIDTH = 560
"""The width of the dialog for a location in pixels: URLs are long."""
MAX_RECENT_LENGTH = 80
"""The number of characters of a location in the menu of recent locations."""
SAMPLE_SHAPE = (24, 384, 384)


class LocationOpener(QObject):
    """Opens locations that the user chooses in a session, and remembers recent locations."""

    def __init__(
        self, session: Session, settings: QSettings, recent: RecentLocations, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._sample = Path(settings.fileName()).parent / "sample.ome.zarr"
        self._recent = recent
        self._parent = parent
        session.opened.connect(lambda location, *_: recent.add(location))

    def actions(self) -> Sequence[ActionSpec]:
        """Return the actions that open locations."""
        menu = "&File"
        return (
            ActionSpec("open_folder", menu, "Open &folder...", "Ctrl+O", self.ask_folder, place=100),
            ActionSpec("open_zip", menu, "&Open file...", "Ctrl+Shift+O", self.ask_zip, place=110),
            ActionSpec(
                "open_location", menu, "Open &location or link...", "Ctrl+L", self.ask_location, place=120
            ),
            ActionSpec(
                "credentials",
                menu,
                "Credenti&als of a URL...",
                "Ctrl+Alt+C",
                self.ask_credentials,
                place=160,
                synonyms="password token login",
            ),
            ActionSpec(
                "open_sample", menu, "Open sample &data set", "Ctrl+Shift+S", self.open_sample, place=150
            ),
            ActionSpec(
                "open_recent",
                menu,
                "Open &recent",
                "Ctrl+R",
                self.ask_recent,
                place=130,
                fill=self.fill_recent,
            ),
            ActionSpec("paste", menu, "Open from clip&board", "Ctrl+V", self.paste, place=140),
        )

    def ask_folder(self) -> None:
        """Ask for a folder and open it."""
        folder = ask_folder(self._parent, "Open folder")
        if folder:
            self._session.open_location(folder)

    def ask_zip(self) -> None:
        """Ask for zip files, metadata documents or files of other formats, and open them."""
        from zarrfs.files.recognition import SUFFIXES

        files = ask_open_files(
            self._parent,
            "Open file",
            plain(
                "Images (*.ozx *.zip zarr.json .zarray .zgroup .zattrs attributes.json "
                + " ".join(f"*{suffix}" for suffix in SUFFIXES)
                + ");;All files (*)"
            ),
        )
        self.open_all("\n".join(files))

    def ask_location(self) -> None:
        """Ask for a path, URL or link and open it."""
        dialog = QInputDialog(self._parent)
        dialog.setWindowTitle("Open location")
        dialog.setLabelText("Path, URL or link to a view:")
        dialog.resize(LOCATION_WIDTH, dialog.sizeHint().height())
        if dialog.exec():
            self.open_all(dialog.textValue())
        dialog.deleteLater()

    def ask_credentials(self) -> None:
        """Ask for the credentials of a server, and use them for its URLs from now on.

        The dialog has the URL that was opened last, also if the server refused it.
        """
        location = hide_credentials(self._session.requested)
        dialog = CredentialsDialog(location if origin_of(location) is not None else "", self._parent)
        if dialog.exec():
            self.use_credentials(dialog.origin, dialog.values(), dialog.in_keyring.isChecked())
        dialog.deleteLater()

    def use_credentials(self, origin: str | None, values: dict[str, str], in_keyring: bool) -> None:
        """Use credentials for an origin; without values they are removed. The keyring is written on a worker thread.

        A location of the origin that could not be opened is opened again.
        """
        if origin is None:
            return
        has_values = any(values.values())

        def apply() -> ZarrError | None:
            try:
                if has_values:
                    remember(origin, values, in_keyring)
                else:
                    forget(origin)
            except ZarrError as error:  # of the keyring; the credentials are used nevertheless
                return error
            return None

        def done(error: ZarrError | None) -> None:
            refused = self._session.refused
            is_refused = has_values and bool(refused) and origin_of(refused) == origin
            if is_refused:
                self._session.open_location(refused)
            text = f"The credentials of {origin} are {'used' if has_values else 'removed'}."
            if error is not None:
                self._session.show_message(str(error), True)
            else:
                self._session.show_message(text if is_refused else f"{text} Open its locations again.")

        self._session.run_in_worker(apply, done, "credentials")

    def fill_recent(self, menu: QMenu) -> None:
        """Add the recent locations to a menu."""
        recent = self.recent()
        for number, location in enumerate(recent, 1):
            # The end of a long location has its name.
            shown = (
                location if len(location) <= MAX_RECENT_LENGTH else f"…{location[1 - MAX_RECENT_LENGTH :]}"
            )
            mnemonic = "&" if number < 10 else ""
            entry = menu.addAction(plain(f"{mnemonic}{number}  {button_text(shown, MAX_RECENT_LENGTH)}"))
            if entry is not None:
                entry.triggered.connect(lambda _=False, each=location: self._session.open_location(each))
        if not recent:
            entry = menu.addAction("No recent locations")
            if entry is not None:
                entry.setEnabled(False)

    def ask_recent(self) -> None:
        """Ask for one of the recent locations and open it."""
        recent = self.recent()
        if not recent:
            self._session.show_message("There are no recent locations.")
            return
        entries = [plain(f"{number}: {location}") for number, location in enumerate(recent, 1)]
        text, accepted = QInputDialog.getItem(self._parent, "Open recent", "Location:", entries, 0, False)
        if accepted:
            self._session.open_location(recent[entries.index(text)])

    def paste(self) -> None:
        """Open the locations on the clipboard."""
        clipboard = QGuiApplication.clipboard()
        text = clipboard.text() if clipboard is not None else ""
        if not parse_locations(text):
            self._session.show_message(
                "The clipboard does not contain a location. Copy a path, a URL or a link first."
            )
        self.open_all(text)

    def open_all(self, text: str) -> None:
        """Open every location in a text."""
        for location in parse_locations(text):
            self._session.open_location(location)

    def recent(self) -> list[str]:
        """Return the recent locations, the newest first."""
        return self._recent.locations()

    def open_sample(self) -> None:
        """Open the sample data set. It is generated on a worker thread unless it exists."""
        sample = self._sample

        def create() -> None:
            import shutil

            from zarrfs.synthetic import make_picture, write_image

            if not sample.exists():
                sample.parent.mkdir(parents=True, exist_ok=True)
                partial = sample.with_name(f"sample-{os.getpid()}.partial.zarr")
                shutil.rmtree(partial, ignore_errors=True)
                write_image(str(partial), make_picture(SAMPLE_SHAPE), name="sample cells")
                partial.rename(sample)

        self._session.show_message("Generating the sample data set...")
        self._session.run_in_worker(create, lambda _: self._session.open_location(str(sample)), "sample")
