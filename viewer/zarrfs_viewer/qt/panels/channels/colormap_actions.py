"""More colour maps: those of the package cmap, and lookup tables that the user imports."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PyQt6.QtCore import QObject, QSettings
from PyQt6.QtWidgets import QWidget

from zarrfs.errors import StoreError, ZarrError
from zarrfs_viewer.qt.panels.channels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.panels.channels.colormap_dialog import ColormapDialog
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.file_dialogs import ask_open_file
from zarrfs_viewer.state.colormaps import is_colormap
from zarrfs_viewer.state.luts import MAX_LUT_NBYTES, cmap_names, lut_name, lut_title, parse_lut

__all__ = ["ColormapActions"]

SETTING = "colormaps"
MAX_EXTRA = 40
"""The number of colour maps that are kept in the lists of the channels, the last used first."""


class ColormapActions(QObject):
    """Adds colour maps to the lists of channels panels, and remembers them in the settings."""

    def __init__(self, session: Session, settings: QSettings, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._settings, self._parent = session, settings, parent
        self._panels: list[ChannelsPanel] = []

    def add(self, panel: ChannelsPanel) -> None:
        """Offer the colour maps in a panel."""
        self._panels.append(panel)
        panel.show_extra_colormaps(self.names())
        panel.more_requested.connect(partial(self._choose, panel))
        panel.import_requested.connect(partial(self._ask_file, panel))

    def names(self) -> tuple[str, ...]:
        """Return the colour maps that were added, the last one first."""
        stored = self._settings.value(SETTING)
        names = [stored] if isinstance(stored, str) else stored if isinstance(stored, list) else []
        return tuple(name for name in names if isinstance(name, str) and is_colormap(name))

    def _choose(self, panel: ChannelsPanel, number: int) -> None:
        """Ask for a colour map of cmap, and use it for a channel."""
        try:
            names = cmap_names()
        except ZarrError as error:
            self._session.show_error(error)
            return
        dialog = ColormapDialog(names, self._parent)
        if dialog.exec():
            name = dialog.selected()
            if name is not None:
                self._use(panel, number, name)
        dialog.deleteLater()

    def _ask_file(self, panel: ChannelsPanel, number: int) -> None:
        """Ask for a lookup table, and use it for a channel."""
        file = ask_open_file(self._parent, "Import lookup table", "Lookup tables (*.lut *.txt *.csv)")
        if file:
            self.import_lut(panel, number, Path(file))

    def import_lut(self, panel: ChannelsPanel, number: int, file: Path) -> None:
        """Use a lookup table for a channel. The file is read on a worker thread; errors are shown."""
        self._session.run_in_worker(
            lambda: _read_lut(file), lambda name: self._use(panel, number, name), f"lut {file}"
        )

    def _use(self, panel: ChannelsPanel, number: int, name: str) -> None:
        others = [
            other
            for other in self.names()
            if other != name and not (name.startswith("lut:") and lut_title(other) == lut_title(name))
        ]
        names = [name, *others][:MAX_EXTRA]
        self._settings.setValue(SETTING, names)
        for other in self._panels:
            other.show_extra_colormaps(tuple(names))
        panel.changed.emit(number, {"colormap": name})


def _read_lut(file: Path) -> str:
    """Return the name of the colour map in a lookup table file. Blocks. Raises ZarrError."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_LUT_NBYTES + 1)
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror or error}", error.errno) from error
    if len(content) > MAX_LUT_NBYTES:
        raise ZarrError(f"{file} is not a lookup table: it has more than {MAX_LUT_NBYTES} bytes")
    return lut_name(file.stem, parse_lut(content, str(file)))
