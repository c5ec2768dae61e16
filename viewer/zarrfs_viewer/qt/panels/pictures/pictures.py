"""Pictures and movies of the view: to the clipboard, as PNG of any size, as MP4 and as a series of PNG files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PyQt6.QtGui import QAction, QGuiApplication, QImage

from zarrfs_viewer.export.movie import movie_positions, write_mp4, write_series
from zarrfs_viewer.export.picture import render_view
from zarrfs_viewer.export.writers import Progress
from zarrfs_viewer.qt.canvas.layer_pictures import render_layers
from zarrfs_viewer.qt.canvas.picture import draw_picture, to_pixels
from zarrfs_viewer.qt.panels.layers.layers_view import LayersView
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.panel import NO_IMAGE, Panel, PanelContext
from zarrfs_viewer.qt.panels.pictures.export_dialog import ExportDialog, Exporter, file_name
from zarrfs_viewer.qt.panels.pictures.picture_dialog import MovieChoice, PictureDialog, movie_axes
from zarrfs_viewer.qt.panels.pictures.picture_menu import PictureMenu
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.file_dialogs import ask_new_file
from zarrfs_viewer.qt.support.png import write_png
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.state.view_state import Viewport, with_position

__all__ = ["PictureActions"]

MAX_LISTED_SLICES = 10

Drawn = tuple[QImage, str]
"""A picture, and the reason why parts of it are hatched."""
Draw = Callable[[int | None], Drawn]
"""Draws the slice at a position of the axis of a movie, or the displayed slice."""


class PictureActions(Panel):
    """Renders the view on a worker thread, from the level that the size of the picture needs."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self._panes = context.panes
        self._parent = context.window
        self.exporter = Exporter(context.session, context.window)

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec(
                "export",
                "&File",
                "&Export...",
                "Ctrl+E",
                self.ask_export,
                place=200,
                needs="image",
                synonyms="save as TIFF NumPy crop",
            ),
            ActionSpec(
                "screenshot",
                "&File",
                "Save &screenshot...",
                "Ctrl+S",
                self.ask_screenshot,
                place=220,
                synonyms="snapshot capture window",
            ),
            ActionSpec(
                "picture", "&File", "Save p&icture...", "Ctrl+P", self.ask_picture, place=210, needs="image"
            ),
            ActionSpec(
                "movie",
                "&File",
                "Save mo&vie...",
                "Ctrl+Shift+M",
                self.ask_movie,
                place=230,
                needs="image",
                synonyms="video animation",
            ),
            ActionSpec(
                "copy_picture",
                "&Edit",
                "&Copy picture",
                "Ctrl+C",
                self.copy,
                place=200,
                needs="image",
                synonyms="clipboard",
            ),
        )

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        """Create the context menu of the picture."""
        context = self._context
        self.menu = PictureMenu(
            context.session, context.panes, context.find(Measurements), actions, context.window
        )

    def close(self) -> None:
        self.exporter.close()

    def ask_export(self) -> None:
        """Ask for the part and format to export, and export it."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            self._session.show_message(NO_IMAGE)
            return
        pane = self._panes.main
        state = pane.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        canvas = pane.canvas
        dialog = ExportDialog(image, settings, canvas.viewport, level, canvas.shape, self._parent)
        self.exporter.ask(dialog, settings)

    def ask_screenshot(self) -> None:
        """Ask for a file and write the panes to it as they are drawn."""
        file, _ = ask_new_file(self._parent, "Save screenshot", "screenshot.png", "PNG (*.png)")
        if file:
            is_saved = self._panes.grab().save(file, "PNG")
            text = f"Saved to {file}" if is_saved else f"{file} cannot be written"
            self._session.show_message(text, not is_saved)

    def copy(self) -> None:
        """Copy the picture to the clipboard as it is displayed, with the scale bar if it is enabled."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            self._session.show_message(NO_IMAGE)
            return
        canvas = self._panes.main.canvas
        draw = self._drawing(canvas.viewport, canvas.layers.show_scale_bar)
        if draw is not None:
            self._session.run_in_worker(lambda: draw(None), self._put_on_clipboard, "picture")

    def _put_on_clipboard(self, drawn: Drawn) -> None:
        picture, error = drawn
        clipboard = QGuiApplication.clipboard()
        if clipboard is not None:
            clipboard.setImage(picture)
            size = f"{picture.width()} x {picture.height()} pixels"
            note = _incomplete_picture(error)
            self._session.show_message(
                " ".join(filter(None, (f"Copied a picture of {size} to the clipboard.", note))), bool(note)
            )

    def ask_picture(self) -> None:
        """Ask for a size and a file, and write the picture as PNG."""
        dialog = self.dialog(movie=False)
        if dialog is None or not dialog.exec():
            return
        file, _ = ask_new_file(self._parent, "Save picture", self._name(".png"), "*.png")
        if file:
            self.write_picture(dialog, Path(file))

    def ask_movie(self) -> None:
        """Ask for slices, a size and a file, and write the movie."""
        dialog = self.dialog(movie=True)
        if dialog is None or not dialog.exec():
            return
        is_video = dialog.movie().format == "mp4"
        title = "Save movie" if is_video else "Name of the new folder"
        name = self._name(".mp4" if is_video else "_series")
        file, _ = ask_new_file(self._parent, title, name, "*.mp4" if is_video else "")
        if file:
            self.write_movie(dialog, Path(file))

    def dialog(self, movie: bool) -> PictureDialog | None:
        """Return the dialog for the displayed image. Without an image or slices, shows a message and returns None."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            self._session.show_message(NO_IMAGE)
            return None
        if movie and not movie_axes(image, settings):
            self._session.show_message("The image has only one slice: there is no axis for a movie.")
            return None
        return PictureDialog(image, settings, self._panes.main.canvas.viewport, movie, self._parent)

    def _name(self, suffix: str) -> str:
        image = self._session.image
        return file_name(image.name if image is not None else "") + suffix

    def write_picture(self, dialog: PictureDialog, file: Path) -> None:
        """Write the picture that is selected in a dialog. Returns at once."""
        draw = self._drawing(dialog.viewport(), dialog.scale_bar.isChecked())
        if draw is not None:
            self.exporter.run(lambda _: _write_picture(file, draw), file)

    def write_movie(self, dialog: PictureDialog, file: Path) -> None:
        """Write the movie that is selected in a dialog. Returns at once."""
        movie = dialog.movie()
        draw = self._drawing(dialog.viewport(), dialog.scale_bar.isChecked(), movie.axis)
        if draw is not None:
            self.exporter.run(lambda progress: _write_movie(movie, file, draw, progress), file)

    def _drawing(self, viewport: Viewport, with_bar: bool, axis: int | None = None) -> Draw | None:
        """Return a function that draws the slice at a position of an axis. Call the function on a worker thread."""
        image, settings, overlays = self._session.image, self._session.settings, self._session.overlays
        image_layers = self._context.find(LayersView).layers
        layers, shows_first = image_layers.drawings(viewport), image_layers.first_visible
        if image is None or settings is None:
            return None

        def draw(position: int | None) -> Drawn:
            place = settings if axis is None or position is None else with_position(settings, axis, position)
            frame = render_view(image, place, viewport, overlays, skip_corrupt=True)
            pictures, problem = render_layers(image, place, viewport, layers)
            error = frame.errors[0].message if frame.errors else problem
            return draw_picture(frame, with_bar, pictures, shows_first), error

        return draw


def _write_picture(file: Path, draw: Draw) -> str:
    """Write a picture, and return a note for the user."""
    picture, error = draw(None)
    write_png(file, to_pixels(picture))
    return _incomplete_picture(error)


def _incomplete_picture(error: str) -> str:
    return f"Parts of it are hatched, because their chunks cannot be read: {error}" if error else ""


def _write_movie(movie: MovieChoice, file: Path, draw: Draw, progress: Progress) -> str:
    """Write a movie, and return a note for the user. A corrupt chunk does not end it: its pixels are hatched."""
    errors: dict[int, str] = {}

    def draw_slice(position: int) -> Pixels:
        picture, error = draw(position)
        if error:
            errors[position] = error
        return to_pixels(picture)

    positions = movie_positions(movie.first, movie.last, movie.step)
    if movie.format == "mp4":
        write_mp4(file, positions, draw_slice, movie.frames_per_second, progress)
    else:
        write_series(file, file_name(file.name), positions, draw_slice, write_png, progress)
    if not errors:
        return ""
    numbers = ", ".join(map(str, list(errors)[:MAX_LISTED_SLICES]))
    more = ", ..." if len(errors) > MAX_LISTED_SLICES else ""
    return (
        f"Parts of {len(errors)} of {len(positions)} slices are hatched, because their chunks cannot be read "
        f"(slice {numbers}{more}): {next(iter(errors.values()))}"
    )
