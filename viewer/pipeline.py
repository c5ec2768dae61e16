"""One pane without its widget: intent and window in, frames out.

Ties ``resolve``, the tile streamer and ``compose`` together on one worker thread of its own. Calls return at once;
callbacks come from the worker thread. A Qt pane marshals ``on_frame`` to the GUI thread and draws ``Frame.pixels``
at ``Frame.grid.rect``, under its current viewport transform, so that panning never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewer.compose import Pixels
from viewer.image import Image
from viewer.resolve import DisplayState, FrameGrid
from viewer.state import ViewIntent, Viewport
from viewer.streaming import TileError, TileStreamer

__all__ = ["Frame", "ViewPipeline"]


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture. ``pixels`` are never written to again. ``exact``: every tile of the target level is in it."""

    pixels: Pixels
    grid: FrameGrid
    state: DisplayState
    exact: bool


class ViewPipeline:
    """Draws the newest wish; wishes and tiles that arrive while it draws are answered by one further frame."""

    def __init__(
        self,
        streamer: TileStreamer,
        *,
        on_frame: Callable[[Frame], None],
        on_error: Callable[[TileError], None] | None = None,
        on_failure: Callable[[BaseException], None] | None = None,
        frame_interval: float = 1 / 60,
    ) -> None:
        raise NotImplementedError

    def show(
        self, image: Image, intent: ViewIntent, viewport: Viewport, overlays: Sequence[Image] = ()
    ) -> None:
        """Show this from now on. Cheap; call it on every change."""
        raise NotImplementedError

    @property
    def state(self) -> DisplayState | None:
        """What was resolved last."""
        raise NotImplementedError

    def clear(self) -> None:
        """Show nothing; old pixels and requests are dropped."""
        raise NotImplementedError

    def close(self, timeout: float = 10.0) -> bool:
        """Stop the thread; no callback comes after this returns."""
        raise NotImplementedError
