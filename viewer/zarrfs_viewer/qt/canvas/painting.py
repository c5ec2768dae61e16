"""Painting over the image: scale bar, loading state, chunk grid, cross-hair and shapes. Units are device pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QBrush, QColor, QFont, QImage, QPainter, QPen, QPolygonF

from zarrfs_viewer.analysis.chunk_overlay import ChunkGrid
from zarrfs_viewer.analysis.regions import Region
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.support.plain_text import plain, plain_lines, plain_name
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import Viewport

__all__ = [
    "Blending",
    "PictureOverlay",
    "device_rect",
    "draw_cross",
    "draw_grid",
    "draw_missing",
    "draw_picture",
    "draw_picture_overlay",
    "draw_progress",
    "draw_regions",
    "draw_scale_bar",
    "draw_shape",
    "draw_status",
    "draw_unreadable",
    "scale_bar_width",
    "status_width",
    "stride_text",
]

Rect = tuple[float, float, float, float]

Blending = Literal["translucent", "additive", "minimum", "difference"]

COMPOSITION_MODES = {
    "translucent": QPainter.CompositionMode.CompositionMode_SourceOver,
    "additive": QPainter.CompositionMode.CompositionMode_Plus,
    "minimum": QPainter.CompositionMode.CompositionMode_Darken,
    "difference": QPainter.CompositionMode.CompositionMode_Difference,
}


@dataclass(frozen=True, eq=False)
class PictureOverlay:
    """A picture that is drawn over the image: its rectangle in data coordinates, blending mode and opacity (0 to 1).

    With ``is_smooth`` its pixels are interpolated. ``source`` owns the memory of the picture.
    """

    picture: QImage
    rect: Rect
    blending: Blending
    opacity: float
    is_smooth: bool = False
    source: object = None


LABEL_BACKGROUND = QColor(0, 0, 0, 110)
CHUNKS, SHARDS = QColor(255, 210, 80, 110), QColor(80, 200, 255, 190)
MISSING, UNREADABLE = QColor(255, 90, 90, 150), QColor(255, 90, 255)
CROSS = QColor(120, 220, 255, 170)
SHAPE = QColor(255, 230, 90)
REGION = QColor(110, 230, 255)
MARGIN = 18
HANDLE = 4.0
POINT = 9.0
"""Half the length of the lines of a point."""
LATE = "loading, previous slice shown"
MAX_BAR = 20
"""The maximum number of characters of the label of the scale bar: a unit may be any text."""


def device_rect(viewport: Viewport, rect: Rect) -> QRectF:
    """Return a box (top, left, bottom, right) of data coordinates in device coordinates."""
    x0, y0 = viewport.to_device(rect[0], rect[1])
    x1, y1 = viewport.to_device(rect[2], rect[3])
    return QRectF(QPointF(x0, y0), QPointF(x1, y1)).normalized()


def draw_picture(
    painter: QPainter, viewport: Viewport, rect: Rect, picture: QImage, is_smooth: bool | None = None
) -> None:
    """Draw a picture of the plane at a box of data coordinates, rotated and mirrored as the viewport is.

    With ``is_smooth`` its pixels are interpolated; None stands for a picture of the image of the viewport.
    """
    painter.setRenderHint(
        QPainter.RenderHint.SmoothPixmapTransform, viewport.zoom < 1 if is_smooth is None else is_smooth
    )
    if not viewport.turns and not viewport.mirrored:
        painter.drawImage(device_rect(viewport, rect), picture)
        return
    top, left, bottom, right = rect
    area = device_rect(viewport, rect)
    painter.save()
    painter.translate(area.center())
    painter.rotate(90 * viewport.turns)
    painter.scale(-1 if viewport.mirrored else 1, 1)
    row_zoom, column_zoom = viewport.zooms
    width, height = (right - left) * column_zoom, (bottom - top) * row_zoom
    painter.drawImage(QRectF(-width / 2, -height / 2, width, height), picture)
    painter.restore()


def _draw_line(painter: QPainter, viewport: Viewport, row: float | None, column: float | None) -> None:
    """Draw a line through the visible plane along a row or a column."""
    top, left, bottom, right = viewport.rect
    if row is not None:
        ends = (row, left), (row, right)
    else:
        assert column is not None
        ends = (top, column), (bottom, column)
    painter.drawLine(*(QPointF(*viewport.to_device(*end)) for end in ends))


def draw_grid(painter: QPainter, viewport: Viewport, grid: ChunkGrid) -> None:
    """Draw the boundaries of chunks and shards within the plane."""
    painter.save()
    painter.setClipRect(device_rect(viewport, grid.rect).adjusted(-1, -1, 1, 1))
    for color, rows, columns in (
        (CHUNKS, grid.chunk_rows, grid.chunk_columns),
        (SHARDS, grid.shard_rows, grid.shard_columns),
    ):
        painter.setPen(QPen(color, 0))
        for row in rows:
            _draw_line(painter, viewport, row, None)
        for column in columns:
            _draw_line(painter, viewport, None, column)
    painter.restore()


def draw_missing(painter: QPainter, viewport: Viewport, missing: Iterable[Rect]) -> None:
    """Hatch the missing chunks."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QBrush(MISSING, Qt.BrushStyle.BDiagPattern))
    for rect in missing:
        painter.drawRect(device_rect(viewport, rect))
    painter.setBrush(Qt.BrushStyle.NoBrush)


def draw_unreadable(painter: QPainter, viewport: Viewport, unreadable: Iterable[Rect]) -> None:
    """Draw a frame with diagonals over the chunks that cannot be read."""
    painter.setPen(QPen(UNREADABLE, 0))
    for rect in unreadable:
        area = device_rect(viewport, rect)
        painter.drawRect(area)
        painter.drawLine(area.topLeft(), area.bottomRight())
        painter.drawLine(area.topRight(), area.bottomLeft())


def draw_cross(painter: QPainter, viewport: Viewport, point: tuple[float, float]) -> None:
    """Draw the cross-hair: the position of the linked planes."""
    painter.setPen(QPen(CROSS, 0, Qt.PenStyle.DashLine))
    _draw_line(painter, viewport, point[0], None)
    _draw_line(painter, viewport, None, point[1])


def draw_shape(painter: QPainter, viewport: Viewport, shape: Shape, is_open: bool = False) -> None:
    """Draw a shape with its handles, visible on light and dark images. An open polygon is still being drawn."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _draw_outline(painter, viewport, shape, SHAPE, is_open)
    painter.setBrush(SHAPE)
    painter.setPen(QPen(QColor(0, 0, 0, 200), 1))
    for point in shape.points:
        painter.drawEllipse(QPointF(*viewport.to_device(*point)), HANDLE, HANDLE)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def _draw_outline(
    painter: QPainter, viewport: Viewport, shape: Shape, color: QColor, is_open: bool = False
) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    points = QPolygonF([QPointF(*viewport.to_device(*point)) for point in shape.points])
    for pen in (QPen(QColor(0, 0, 0, 160), 3.5), QPen(color, 1.5)):
        painter.setPen(pen)
        if shape.kind == "rectangle":
            painter.drawRect(device_rect(viewport, shape.rect))
        elif shape.kind == "ellipse":
            painter.drawEllipse(device_rect(viewport, shape.rect))
        elif shape.kind == "polygon" and not is_open:
            painter.drawPolygon(points)
        elif shape.kind == "point":
            x, y = viewport.to_device(*shape.start)
            painter.drawLine(QPointF(x - POINT, y), QPointF(x + POINT, y))
            painter.drawLine(QPointF(x, y - POINT), QPointF(x, y + POINT))
        else:
            painter.drawPolyline(points)


def draw_regions(painter: QPainter, viewport: Viewport, regions: Iterable[Region]) -> None:
    """Draw the outlines of regions, with their names at the upper left corner."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font = QFont(painter.font().family())
    font.setPointSizeF(9 / painter.worldTransform().m11())  # the coordinates are device pixels
    for region in regions:
        _draw_outline(painter, viewport, region.shape, REGION)
        corner = device_rect(viewport, region.shape.rect).topLeft() + QPointF(3, -4)
        painter.setFont(font)
        text = plain_name(region.name)
        painter.setPen(QColor(0, 0, 0, 200))
        painter.drawText(corner + QPointF(1, 1), text)
        painter.setPen(REGION)
        painter.drawText(corner, text)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def draw_picture_overlay(painter: QPainter, viewport: Viewport, overlay: PictureOverlay) -> None:
    """Blend the picture of a layer with what has been drawn."""
    painter.save()
    picture = overlay.picture
    if overlay.blending == "additive":
        # Qt would interpolate between the image and the sum, after limiting the sum to 255.
        picture = _darkened(picture, overlay.opacity)
    else:
        painter.setOpacity(overlay.opacity)
    painter.setCompositionMode(COMPOSITION_MODES[overlay.blending])
    draw_picture(painter, viewport, overlay.rect, picture, overlay.is_smooth)
    painter.restore()


def _darkened(picture: QImage, factor: float) -> QImage:
    """Return a picture whose colours are multiplied by a factor between 0 and 1."""
    if factor >= 1:
        return picture
    darkened = picture.copy()
    painter = QPainter(darkened)
    painter.setCompositionMode(
        QPainter.CompositionMode.CompositionMode_SourceAtop
    )  # keeps the opacity of pixels
    painter.fillRect(darkened.rect(), QColor(0, 0, 0, round(255 * (1 - factor))))
    painter.end()
    return darkened


def scale_bar_width(length: float) -> float:
    """Return the width from the left edge of the scale bar to the right edge of the pane."""
    return length + 8 + MARGIN


def draw_scale_bar(painter: QPainter, viewport: Viewport, length: float, text: str) -> None:
    """Draw the scale bar at the lower right."""
    y = viewport.height - MARGIN
    x = viewport.width - MARGIN - length
    painter.fillRect(QRectF(x - 8, y - 24, length + 16, 34), LABEL_BACKGROUND)
    painter.fillRect(QRectF(x, y, length, 3), QColor(255, 255, 255))
    painter.setPen(QColor(255, 255, 255))
    painter.setFont(QFont(painter.font().family(), 9))
    painter.drawText(
        QRectF(x - 8, y - 22, length + 16, 18), Qt.AlignmentFlag.AlignCenter, plain(text, MAX_BAR)
    )


def stride_text(stride: tuple[int, int]) -> str:
    """Return which pixels of a level are drawn; an empty text if all are."""
    rows, columns = (_every(number) for number in stride)
    if rows == columns:
        return f"every {rows} pixel" if rows else ""
    return ", ".join(
        f"every {number} {name}" for number, name in ((rows, "row"), (columns, "column")) if number
    )


def _every(number: int) -> str:
    """Return an ordinal number, or an empty text for 1."""
    if number == 1:
        return ""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def draw_progress(painter: QPainter, viewport: Viewport, text: str) -> None:
    """Draw lines of text in the middle, in the place of a picture that is being loaded."""
    painter.setFont(QFont(painter.font().family(), 11))
    painter.setPen(QColor(200, 200, 205))
    area = QRectF(12, 0, viewport.width - 24, viewport.height)
    painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, plain_lines(text))


def _status_text(viewport: Viewport, frame: Frame | None, title: str, progress: str) -> str:
    orientation = f"{90 * viewport.turns}\N{DEGREE SIGN}" if viewport.turns else ""
    status = "loading" if frame is None else f"level {frame.state.level}"
    drawn = "" if frame is None else stride_text(frame.grid.stride)
    parts = (
        plain_name(title),
        f"{status}{drawn and ', '}{drawn}",
        progress,
        "mirrored" if viewport.mirrored else "",
        orientation,
    )
    return "  ".join(filter(None, parts))


def status_width(painter: QPainter, viewport: Viewport, frame: Frame | None, title: str) -> float:
    """Return the width from the left edge of the pane to the right edge of the state, with its longest text."""
    painter.setFont(QFont(painter.font().family(), 9))
    longest = _status_text(viewport, frame, title, LATE)
    return 12 + painter.fontMetrics().horizontalAdvance(longest) + 30


def draw_status(
    painter: QPainter, viewport: Viewport, frame: Frame | None, title: str, is_late: bool = False
) -> None:
    """Draw the axes, the pyramid level and the loading state at the lower left. ``is_late`` states that the frame is of
    another slice than the one that is requested.
    """
    progress = "" if frame is None or frame.complete else "incomplete" if frame.finished else "loading"
    if frame is not None and (is_late or frame.is_replaced):
        progress = LATE
    text = _status_text(viewport, frame, title, progress)
    painter.setFont(QFont(painter.font().family(), 9))
    width = painter.fontMetrics().horizontalAdvance(text) + 30
    painter.fillRect(QRectF(12, viewport.height - 38, width, 24), LABEL_BACKGROUND)
    painter.setPen(Qt.PenStyle.NoPen)
    is_complete = frame is not None and frame.complete and not is_late
    painter.setBrush(QColor(90, 220, 120) if is_complete else QColor(240, 180, 60))
    painter.drawEllipse(QPointF(24, viewport.height - 26), 4, 4)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QColor(235, 235, 235))
    painter.drawText(QPointF(36, viewport.height - 21), plain(text))
