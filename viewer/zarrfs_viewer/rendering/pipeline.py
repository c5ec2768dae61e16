"""One pane without its widget: intent and window in, frames out.

Ties ``resolve``, the tile streamer and ``FrameRenderer`` together on one worker thread of its own. Calls
return at once; callbacks come from worker threads. A Qt pane marshals ``on_frame`` to the GUI thread and draws
``Frame.pixels`` at ``Frame.grid.rect``, under its current viewport transform, so that panning never waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic

from zarrfs_viewer.display.resolve import DisplayState, resolve
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileKey, TileRequest
from zarrfs_viewer.rendering.renderer import Frame, FrameRenderer
from zarrfs_viewer.state.view_state import ViewIntent, Viewport
from zarrfs_viewer.streaming.streamer import TileError, TileStreamer

__all__ = ["Frame", "ViewPipeline"]

DisplayRequest = tuple[Image, ViewIntent, Viewport, tuple[Image, ...]]


class ViewPipeline:
    """Draws the newest wish; wishes and tiles that arrive while it draws are answered by one further frame.

    A wish is drawn at once if anything of it is there; further tiles are drawn at most every
    ``frame_interval`` seconds, the last one at once. ``on_failure`` is told what should not have happened (an
    exception outside of reading); the thread goes on.
    """

    def __init__(
        self,
        streamer: TileStreamer,
        *,
        on_frame: Callable[[Frame], None],
        on_error: Callable[[TileError], None] | None = None,
        on_failure: Callable[[BaseException], None] | None = None,
        frame_interval: float = 1 / 60,
    ) -> None:
        self._streamer = streamer
        self._on_frame = on_frame
        self._on_error = on_error
        self._on_failure = on_failure
        self._interval = frame_interval
        self._lock = threading.Condition()
        self._wish: DisplayRequest | None = None
        self._new_wish = self._new_tiles = self._all_there = False
        self._clearing = self._closed = False
        self._state: DisplayState | None = None
        self._renderer = FrameRenderer()
        self._last_frame = 0.0
        self._drawn = False
        self._settled_generation = 0
        self._callback_lock = threading.RLock()
        self._stream = streamer.open(on_tile=self._tile, on_error=self._error, on_exact=self._exact)
        self._thread = threading.Thread(target=self._run, name="viewer-frames", daemon=True)
        self._thread.start()

    def show(
        self, image: Image, intent: ViewIntent, viewport: Viewport, overlays: Sequence[Image] = ()
    ) -> None:
        """Show this from now on. Cheap; call it on every change."""
        with self._lock:
            self._wish = image, intent, viewport, tuple(overlays)
            self._new_wish = True
            self._lock.notify()

    @property
    def state(self) -> DisplayState | None:
        """What was resolved last; it may lag behind ``show`` by a frame."""
        return self._state

    def refresh(self) -> None:
        """Draw a frame even though nothing changed."""
        with self._lock:
            self._all_there = True
            self._lock.notify()

    def clear(self) -> None:
        """Show nothing; old pixels and requests are dropped."""
        with self._lock:
            self._wish = None
            self._new_wish = self._new_tiles = self._all_there = False
            self._clearing = True
            self._lock.notify()

    def close(self, timeout: float = 10.0) -> bool:
        """Stop the thread; no callback comes after this returns. Returns False if it still runs."""
        with self._lock:
            self._closed = True
            self._lock.notify()
        self._stream.close()
        with self._callback_lock:  # a frame that is being handed out
            pass
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- called by stream workers ------------------------------------------------------------------------------

    def _tile(self, key: TileKey, generation: int) -> None:
        with self._lock:
            self._new_tiles = True
            self._lock.notify()

    def _exact(self, generation: int) -> None:
        with self._lock:
            self._settled_generation = generation
            self._all_there = True
            self._lock.notify()

    def _error(self, error: TileError, generation: int) -> None:
        if self._on_error is not None:
            self._on_error(error)

    # -- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._lock:
                self._wait()
                if self._closed:
                    return
                clearing, self._clearing = self._clearing, False
                wish = self._wish if self._new_wish else None
                self._new_wish = self._new_tiles = self._all_there = False
            try:
                if clearing:
                    self._renderer.clear()
                    self._state = None
                    self._drawn = False
                    self._stream.show((), ())
                if wish is not None:
                    self._resolve(wish)
                self._draw()
            except Exception as error:
                self._fail(error)

    def _wait(self) -> None:
        """Wait until there is something to draw. Called under the lock."""
        while not (self._closed or self._new_wish or self._all_there or self._clearing):
            if self._new_tiles:
                left = self._last_frame + self._interval - monotonic()
                if left <= 0:
                    return
                self._lock.wait(left)
            else:
                self._lock.wait()

    def _resolve(self, wish: DisplayRequest) -> None:
        image, intent, viewport, overlays = wish
        state = resolve(intent, image, viewport, overlays, self._state)
        self._state = state
        self._stream.show(state.images, self._wanted(state), state.prefetch)
        with self._lock:  # what has arrived meanwhile is drawn now
            self._new_tiles = self._all_there = False

    def _wanted(self, state: DisplayState) -> list[TileRequest]:
        """Return the requests to make: without the backdrop of coarser levels where all in front of it is
        there.
        """
        target = {layer.planes[-1] for layer in state.layers}
        sharp = [request for request in state.tiles if request.key.plane in target]
        present = self._streamer.present([request.key for request in sharp])
        return sharp if len(present) == len(sharp) else list(state.tiles)

    def _draw(self) -> None:
        state = self._state
        if state is None:
            return
        # An earlier generation may have reported in the very moment in which this one began.
        settled = self._settled_generation == self._stream.generation
        if self._drawn and not settled and not self._streamer.present([r.key for r in state.tiles]):
            return  # it would only show old pixels again, which the pane does by itself
        keys = [request.key for request in state.tiles]
        frame = self._renderer.render(
            state, self._streamer.get, settled, lambda: self._streamer.failures(keys)
        )
        self._last_frame = monotonic()
        if frame is None:
            return
        self._drawn = True
        with self._callback_lock:
            if not self._closed and self._state is state:
                self._on_frame(frame)

    def _fail(self, error: BaseException) -> None:
        if self._on_failure is None:
            return
        with self._callback_lock:
            if not self._closed:
                self._on_failure(error)
