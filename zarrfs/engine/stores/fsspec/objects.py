"""Backends of object stores, which fetch ranges without knowing the size of a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zarrfs.engine.stores.base import Buffer, ByteRange
from zarrfs.engine.stores.fsspec.backend import Backend
from zarrfs.engine.stores.fsspec.presence import Presence, classify_error

__all__ = ["AzureBackend", "ObjectStorageBackend", "S3Backend"]


class ObjectStorageBackend(Backend):
    """Object storage with suffix ranges, for example Google Cloud Storage."""

    supports_suffix_ranges = True
    """Whether the last bytes of a value can be fetched without knowing its size."""

    def _fetch_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        buffers = self._fetch_unsized(path, ranges)
        return super()._fetch_ranges(path, ranges) if buffers is None else buffers

    def _fetch_unsized(self, path: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of the ranges, or None if the size of the value is needed to fetch them."""
        if any(length == 0 for _, length in ranges):
            return None
        if not self.supports_suffix_ranges and any(start < 0 or length is None for start, length in ranges):
            return None
        starts = [start for start, _ in ranges]
        stops = [None if length is None else start + length for start, length in ranges]
        results = self.file_system.cat_ranges([path] * len(ranges), starts, stops, on_error="return")
        for (start, length), result in zip(ranges, results, strict=True):
            if isinstance(result, Exception):
                if classify_error(result) is Presence.MISSING:
                    raise result
                # Usually a range that starts beyond the end, or a suffix range of an empty value.
                return None
            if len(result) > (-start if start < 0 else length or len(result)):
                return None  # The server does not support this kind of range and has sent more bytes.
        return list(results)


class AzureBackend(ObjectStorageBackend):
    """Azure Blob Storage."""

    supports_suffix_ranges = False


class S3Backend(ObjectStorageBackend):
    """S3 and compatible servers."""

    async def request(self, path: str) -> Buffer:
        value: bytes = await self.file_system._cat_file(path, start=0)  # as in ``_fetch``
        return value

    def read_prefetched(self, path: str, result: Callable[[], Buffer]) -> Buffer | None:
        try:
            return super().read_prefetched(path, result)
        except Exception:
            return self.read(path)  # an empty value has no range

    def _fetch(self, path: str, max_nbytes: int | None) -> Buffer:
        # ``cat_file`` requests the size first. The range from 0 to the end avoids this request.
        buffers = self._fetch_unsized(path, [ByteRange(0)])
        return super()._fetch(path, max_nbytes) if buffers is None else buffers[0]
