"""The rendering pipeline of one pane, without Qt: from settings and viewport to frames.

A pipeline runs ``resolve``, the tile stream and ``FrameRenderer`` on a thread of its own. Its methods do not
block, and its callbacks are called from worker threads. A Qt pane marshals ``on_frame`` to the GUI thread and draws
``Frame.pixels`` at ``Frame.grid.rect`` with its current viewport transform, so that panning does not wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from zarrfs.engine.cache import default_cache
from zarrfs_viewer.display.resolve import DisplayState, resolve
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileKey, TileRequest
from zarrfs_viewer.rendering.renderer import Frame, FrameRenderer
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport
from zarrfs_viewer.streaming.streamer import TileError, TileStreamer

__all__ = ["Frame", "FrameThread", "ViewPipeline"]

PREFETCH_DELAY_SECONDS = 0.005
"""Tiles are prefetched this many seconds after a complete frame, when a window has drawn the frame. Prefetching at the
same time would double the time of a step between slices that are in memory.
"""

MAX_PICTURE_FRACTION = 0.25
"""The part of the tile cache that the visible tiles of one pane may use: visible tiles are not evicted, and four linked
panes may be displayed."""

DisplayRequest = tuple[Image, DisplaySettings, Viewport, tuple[Image, ...]]


@dataclass
class _Changes:
    """The changes since the thread began the last frame."""

    request: DisplayRequest | None = None
    is_cleared: bool = False
    has_new_tiles: bool = False
    is_finished: bool = False

    @property
    def is_urgent(self) -> bool:
        """Whether a frame is drawn immediately."""
        return self.is_cleared or self.is_finished or self.request is not None


class FrameThread:
    """The thread that draws the frames of one or more pipelines, one frame of each in turn. Thread-safe.

    Attributes:
        lock: protects the changes of all pipelines of the thread; notified when there are some.
    """

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self._pipelines: list[ViewPipeline] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="viewer-frames", daemon=True)
        self._thread.start()

    def add(self, pipeline: ViewPipeline) -> None:
        """Draw the frames of a pipeline, too."""
        with self.lock:
            self._pipelines.append(pipeline)

    def remove(self, pipeline: ViewPipeline) -> None:
        """Draw no further frames of a pipeline."""
        with self.lock:
            if pipeline in self._pipelines:
                self._pipelines.remove(pipeline)

    def close(self, timeout: float = 10.0) -> bool:
        """Stop the thread. Returns False if it has not stopped after ``timeout`` seconds."""
        with self.lock:
            self._closed = True
            self.lock.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self.lock:
                pipeline = self._wait()
                if pipeline is None:
                    return
                changes = pipeline.take_changes()
            pipeline.work(changes)
            del pipeline  # a closed pipeline and its frame are not kept until the next change

    def _wait(self) -> ViewPipeline | None:
        """Wait for a pipeline that has something to do; return None if the thread ends. The caller holds the lock."""
        while not self._closed:
            remaining: float | None = None
            for number, pipeline in enumerate(self._pipelines):
                delay = pipeline.delay()
                if delay is not None and delay <= 0:
                    # The others come first the next time.
                    self._pipelines = [*self._pipelines[number + 1 :], *self._pipelines[: number + 1]]
                    return pipeline
                if delay is not None:
                    remaining = delay if remaining is None else min(remaining, delay)
            self.lock.wait(remaining)
        return None


class ViewPipeline:
    """Draws frames for the last display request. Thread-safe.

    The frames are drawn by ``thread``, by default by a thread of the pipeline's own.

    Tiles are prefetched after the frame that is complete, except for a request that arrives before the prefetching for
    the previous one has begun: its tiles are prefetched at once, so that prefetching is not postponed for ever.
    Requests and tiles that arrive during drawing result in one further frame. A request is drawn immediately if
    one of its tiles is in the cache. Further tiles are drawn at most every ``frame_interval`` seconds, and
    immediately when all have arrived. ``on_error`` is called with tiles that cannot be read. ``on_failure`` is
    called with any other exception; the thread continues.
    """

    def __init__(
        self,
        streamer: TileStreamer,
        *,
        on_frame: Callable[[Frame], None],
        on_error: Callable[[TileError], None] | None = None,
        on_failure: Callable[[BaseException], None] | None = None,
        frame_interval: float = 1 / 60,
        thread: FrameThread | None = None,
    ) -> None:
        self._streamer = streamer
        self._on_frame = on_frame
        self._on_error = on_error
        self._on_failure = on_failure
        self._interval = frame_interval
        self._has_own_thread = thread is None
        self._thread = FrameThread() if thread is None else thread
        self._lock = self._thread.lock
        self._changes = _Changes()
        self._closed = False
        self._state: DisplayState | None = None
        self._renderer = FrameRenderer()
        self._last_frame = 0.0
        self._waiting_prefetch: Sequence[TileRequest] = ()
        self._prefetch_time: float | None = None
        self._has_drawn = False
        self._finished_generation = 0
        self._callback_lock = threading.RLock()
        self._stream = streamer.open(
            on_tile=self._tile, on_error=self._error, on_finished=self._finish_generation
        )
        self._thread.add(self)

    def show(
        self, image: Image, settings: DisplaySettings, viewport: Viewport, overlays: Sequence[Image] = ()
    ) -> None:
        """Replace the display request. Does not block; call it for every change."""
        with self._lock:
            self._changes.request = image, settings, viewport, tuple(overlays)
            self._lock.notify()

    @property
    def state(self) -> DisplayState | None:
        """The last resolved state, or None. It may be older than the last call of ``show``."""
        return self._state

    def clear(self) -> None:
        """Remove the display request, its tile requests and the old pixels. Does not block."""
        with self._lock:
            self._changes = _Changes(is_cleared=True)
            self._lock.notify()

    def close(self, timeout: float = 10.0) -> bool:
        """Draw nothing more, and stop the thread if it is the pipeline's own. No callback is called after this returns.

        Returns False if the thread has not stopped after ``timeout`` seconds.
        """
        with self._lock:
            self._closed = True
        self._thread.remove(self)
        self._stream.close()
        with self._callback_lock:  # wait for a running callback
            pass
        return not self._has_own_thread or self._thread.close(timeout)

    # -- called by stream workers ------------------------------------------------------------------------------

    def _tile(self, key: TileKey, generation: int) -> None:
        with self._lock:
            self._changes.has_new_tiles = True
            self._lock.notify()

    def _finish_generation(self, generation: int) -> None:
        with self._lock:
            self._finished_generation = generation
            self._changes.is_finished = True
            self._lock.notify()

    def _error(self, error: TileError, generation: int) -> None:
        if self._on_error is not None:
            self._on_error(error)

    # -- the thread --------------------------------------------------------------------------------------------

    def delay(self) -> float | None:
        """Return after how many seconds a frame is to be drawn or tiles are to be prefetched; None if there is nothing
        to do. The caller holds the lock.
        """
        if self._changes.is_urgent:
            return 0.0
        times = [] if self._prefetch_time is None else [self._prefetch_time]
        if self._changes.has_new_tiles:
            times.append(self._last_frame + self._interval)
        return min(times) - monotonic() if times else None

    def take_changes(self) -> _Changes:
        """Return the changes since the last call. The caller holds the lock."""
        changes, self._changes = self._changes, _Changes()
        return changes

    def work(self, changes: _Changes) -> None:
        """Apply changes, and draw a frame if it is due. Called on the thread."""
        if self._closed:
            return
        try:
            if changes.is_cleared:
                self._waiting_prefetch, self._prefetch_time = (), None
                self._renderer.clear()
                self._state = None
                self._has_drawn = False
                self._stream.show((), ())
            if changes.request is not None:
                self._resolve(changes.request)
            if changes.is_urgent or changes.has_new_tiles:
                self._draw()
            if self._prefetch_time is not None and self._prefetch_time <= monotonic():
                self._prefetch()
        except Exception as error:
            self._fail(error)

    def _resolve(self, request: DisplayRequest) -> None:
        image, settings, viewport, overlays = request
        budget = int(self._streamer.memory.budget * MAX_PICTURE_FRACTION)
        state = resolve(settings, image, viewport, overlays, self._state, default_cache().capacity, budget)
        self._state = state
        was_waiting, self._prefetch_time = bool(self._waiting_prefetch), None
        self._waiting_prefetch = () if was_waiting else state.prefetch
        prefetch = state.prefetch if was_waiting else ()
        self._stream.show(state.images, self._tile_requests(state), prefetch)
        with self._lock:  # tiles that have arrived until now are drawn with this frame
            self._changes.has_new_tiles = self._changes.is_finished = False

    def _tile_requests(self, state: DisplayState) -> list[TileRequest]:
        """Return the tiles to fetch. Coarser levels are omitted if all tiles of the target level are cached."""
        target_planes = {layer.planes[-1] for layer in state.layers}
        target_tiles = [request for request in state.tiles if request.key.plane in target_planes]
        cached = self._streamer.cached_keys([request.key for request in target_tiles])
        return target_tiles if len(cached) == len(target_tiles) else list(state.tiles)

    def _draw(self) -> None:
        state = self._state
        if state is None:
            return
        # The flag may have been set for the previous generation just before this one started.
        finished = self._finished_generation == self._stream.generation
        if self._has_drawn and not finished and not self._streamer.cached_keys([r.key for r in state.tiles]):
            return  # the frame would contain old pixels only, and the pane already draws those
        keys = [request.key for request in state.tiles]
        frame = self._renderer.render(
            state, self._streamer.get, finished, lambda: self._streamer.failures(keys)
        )
        self._last_frame = monotonic()
        if finished and self._waiting_prefetch:
            self._prefetch_time = self._last_frame + PREFETCH_DELAY_SECONDS
        if frame is None:
            return
        self._has_drawn = True
        with self._callback_lock:
            if not self._closed and self._state is state:
                self._on_frame(frame)

    def _prefetch(self) -> None:
        """Request the tiles that are needed later."""
        requests, self._waiting_prefetch, self._prefetch_time = self._waiting_prefetch, (), None
        self._stream.prefetch(requests)

    def _fail(self, error: BaseException) -> None:
        if self._on_failure is None:
            return
        with self._callback_lock:
            if not self._closed:
                self._on_failure(error)
