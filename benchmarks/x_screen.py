"""An X screen from outside of a program: keys that are sent to it, and the pixels that it shows.

The functions of libX11, libXtst and libXext are called through ctypes, so that no further package is needed. A key is
sent with the XTEST extension, which programs cannot distinguish from a keyboard. Pixels are those of the root window.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int, c_long, c_uint, c_ulong, c_void_p
from dataclasses import dataclass
from typing import Any

__all__ = ["Area", "Screen", "ScreenError"]

Z_PIXMAP = 2
ALL_PLANES = 2**64 - 1
USE_CORE_KEYBOARD = 0x0100
REVERT_TO_PARENT = 2
POINTER_ROOT = 1
IS_VIEWABLE = 2
MIN_PROGRAM_WIDTH = 400
"""Windows that are narrower are menus, tooltips and helpers of the toolkit."""
MAX_BACKGROUND_PART = 0.25
POLL_SECONDS = 0.0005


class ScreenError(Exception):
    """The X screen, or an extension of it, is not available."""


class _XImage(Structure):
    """The first members of the structure of Xlib, up to the data and its size."""

    _fields_ = (
        ("width", c_int),
        ("height", c_int),
        ("xoffset", c_int),
        ("format", c_int),
        ("data", POINTER(c_char)),
        ("byte_order", c_int),
        ("bitmap_unit", c_int),
        ("bitmap_bit_order", c_int),
        ("bitmap_pad", c_int),
        ("depth", c_int),
        ("bytes_per_line", c_int),
    )


class _XWindowAttributes(Structure):
    """The structure of Xlib."""

    _fields_ = (
        ("x", c_int),
        ("y", c_int),
        ("width", c_int),
        ("height", c_int),
        ("border_width", c_int),
        ("depth", c_int),
        ("visual", c_void_p),
        ("root", c_ulong),
        ("window_class", c_int),
        ("bit_gravity", c_int),
        ("win_gravity", c_int),
        ("backing_store", c_int),
        ("backing_planes", c_ulong),
        ("backing_pixel", c_ulong),
        ("save_under", c_int),
        ("colormap", c_ulong),
        ("map_installed", c_int),
        ("map_state", c_int),
        ("all_event_masks", c_long),
        ("your_event_mask", c_long),
        ("do_not_propagate_mask", c_long),
        ("override_redirect", c_int),
        ("screen", c_void_p),
    )


def _ignore_error(display: object, event: object) -> int:
    """Ignore an error: a window may have disappeared between two requests. Xlib would end the process."""
    return 0


_ERROR_HANDLER = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)(_ignore_error)


@dataclass(frozen=True)
class Area:
    """A rectangle of the screen in pixels."""

    left: int
    top: int
    width: int
    height: int

    def inner(self, part: float) -> Area:
        """Return the rectangle with the same centre and this part of the width and height."""
        width, height = round(self.width * part), round(self.height * part)
        return Area(
            self.left + (self.width - width) // 2, self.top + (self.height - height) // 2, width, height
        )


def _library(name: str) -> Any:
    path = ctypes.util.find_library(name)
    if path is None:
        raise ScreenError(f"lib{name} is not installed")
    return ctypes.CDLL(path)


class Screen:
    """A connection to an X display. Not thread-safe. Use it as a context manager."""

    def __init__(self, display: str) -> None:
        self._x, self._test = _library("X11"), _library("Xtst")
        self._x.XOpenDisplay.restype = c_void_p
        self._x.XGetImage.restype = POINTER(_XImage)
        self._x.XDefaultRootWindow.restype = c_ulong
        self._x.XStringToKeysym.restype = c_ulong
        connection = self._x.XOpenDisplay(display.encode())
        if not connection:
            raise ScreenError(f"the X display {display} cannot be opened")
        self._display = c_void_p(connection)
        self._x.XSetErrorHandler(_ERROR_HANDLER)
        self._root = c_ulong(self._x.XDefaultRootWindow(self._display))

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._x.XCloseDisplay(self._display)

    # -- input -------------------------------------------------------------------------------------------------

    def send_key(self, name: str) -> None:
        """Press and release a key, given by the name of its keysym, such as ``period`` or ``Page_Up``."""
        code = self._key_code(name)
        for pressed in (1, 0):
            self._test.XTestFakeKeyEvent(self._display, code, pressed, c_ulong(0))
        self._x.XFlush(self._display)

    @contextmanager
    def held_key(self, name: str) -> Iterator[None]:
        """Hold a key. The X server repeats it."""
        code = self._key_code(name)
        self._test.XTestFakeKeyEvent(self._display, code, 1, c_ulong(0))
        self._x.XFlush(self._display)
        try:
            yield
        finally:
            self._test.XTestFakeKeyEvent(self._display, code, 0, c_ulong(0))
            self._x.XFlush(self._display)

    def set_key_repeat(self, delay_milliseconds: int, interval_milliseconds: int) -> None:
        """Set the delay before a held key repeats, and the interval between its repetitions."""
        done = self._x.XkbSetAutoRepeatRate(
            self._display, USE_CORE_KEYBOARD, c_uint(delay_milliseconds), c_uint(interval_milliseconds)
        )
        if not done:
            raise ScreenError("the X server does not support the repetition of keys")
        self._x.XFlush(self._display)

    def move_pointer(self, x: int, y: int) -> None:
        """Move the pointer to a position of the screen."""
        self._test.XTestFakeMotionEvent(self._display, 0, x, y, c_ulong(0))
        self._x.XFlush(self._display)

    def press_button(self, number: int, pressed: bool) -> None:
        """Press or release a button of the pointer; 1 is the left one."""
        self._test.XTestFakeButtonEvent(self._display, c_uint(number), pressed, c_ulong(0))
        self._x.XFlush(self._display)

    def focus(self, window: int) -> None:
        """Give the keyboard focus to a window if no window has it. A window manager, if there is one, gave it."""
        focused, revert = c_ulong(), c_int()
        self._x.XGetInputFocus(self._display, byref(focused), byref(revert))
        if focused.value in (0, POINTER_ROOT, self._root.value):
            self._x.XSetInputFocus(self._display, c_ulong(window), REVERT_TO_PARENT, c_ulong(0))
        self._x.XSync(self._display, 0)

    def _key_code(self, name: str) -> c_uint:
        symbol = self._x.XStringToKeysym(c_char_p(name.encode()))
        code = self._x.XKeysymToKeycode(self._display, c_ulong(symbol))
        if not code:
            raise ScreenError(f"there is no key {name!r}")
        return c_uint(code & 0xFF)

    # -- output ------------------------------------------------------------------------------------------------

    def program_window(self) -> tuple[int, Area] | None:
        """Return the visible top-level window that covers most of the screen, and its area, or None."""
        root, parent, count = c_ulong(), c_ulong(), c_uint()
        children = POINTER(c_ulong)()
        self._x.XQueryTree(
            self._display, self._root, byref(root), byref(parent), byref(children), byref(count)
        )
        found = None
        for number in range(count.value):
            attributes = _XWindowAttributes()
            window = children[number]
            if not self._x.XGetWindowAttributes(self._display, c_ulong(window), byref(attributes)):
                continue
            if attributes.width >= MIN_PROGRAM_WIDTH and attributes.map_state == IS_VIEWABLE:
                area = Area(attributes.x, attributes.y, attributes.width, attributes.height)
                if found is None or area.width * area.height > found[1].width * found[1].height:
                    found = window, area
        if children:
            self._x.XFree(children)
        return found

    def pixels(self, area: Area) -> bytes:
        """Return the pixels of an area, four bytes each."""
        image = self._x.XGetImage(
            self._display,
            self._root,
            area.left,
            area.top,
            c_uint(area.width),
            c_uint(area.height),
            c_ulong(ALL_PLANES),
            Z_PIXMAP,
        )
        if not image:
            raise ScreenError(f"the pixels of {area} cannot be read")
        content = image.contents
        data = ctypes.string_at(content.data, content.bytes_per_line * content.height)
        self._x.XDestroyImage(image)
        return data

    def checksum(self, area: Area) -> int:
        """Return a checksum of the pixels of an area."""
        return zlib.crc32(self.pixels(area))

    def shows_picture(self, area: Area) -> bool:
        """Return whether an area shows a picture: no colour covers most of it, as the background of a window does."""
        colors = Counter(memoryview(self.pixels(area)).cast("I"))
        return max(colors.values()) < area.width * area.height * MAX_BACKGROUND_PART

    def wait_for_change(self, area: Area, before: int, timeout: float) -> tuple[float, int] | None:
        """Return the time and the checksum of the first change of an area; None without a change in the time."""
        end = time.perf_counter() + timeout
        while time.perf_counter() < end:
            value = self.checksum(area)
            if value != before:
                return time.perf_counter(), value
            time.sleep(POLL_SECONDS)
        return None

    def wait_until_still(self, area: Area, seconds: float, timeout: float) -> tuple[float, int]:
        """Wait until an area has not changed for some seconds. Returns the time of the last change, and a checksum."""
        value, changed = self.checksum(area), time.perf_counter()
        end = changed + timeout
        while time.perf_counter() < min(changed + seconds, end):
            found = self.wait_for_change(area, value, changed + seconds - time.perf_counter())
            if found is not None:
                changed, value = found
        return changed, value
