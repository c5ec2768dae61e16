"""Backends of object stores through fsspec, for options that obstore does not have, and without obstore.

They fetch ranges without knowing the size of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange
from zarrfs.engine.stores.remote.backend import FileSystemBackend
from zarrfs.engine.stores.remote.presence import Presence, classify_error

__all__ = ["AzureBackend", "GoogleBackend", "ObjectStorageBackend", "S3Backend"]


class ObjectStorageBackend(FileSystemBackend):
    """Object storage with suffix ranges."""

    supports_suffix_ranges = True
    """Whether the last bytes of a value can be fetched without knowing its size."""
    container_kind = "bucket"
    """What the service calls the first part of a path."""

    def missing_container(self) -> str | None:
        name = self.file_system.split_path(self._root)[0]  # ARNs of access points contain slashes
        if not name:
            return None
        try:
            self._look_up_container(name)
        except Exception as error:
            # Other errors, such as a missing permission, prove nothing.
            return f"{self.container_kind} {name!r}" if classify_error(error) is Presence.MISSING else None
        return None

    def _look_up_container(self, name: str) -> None:
        """Raise an error that means a missing name if the bucket does not exist. Objects in it are not listed."""

    def _fetch_ranges(self, path: str, ranges: Sequence[ByteRange], max_requests: int) -> list[Buffer] | None:
        buffers = self._fetch_unsized(path, ranges, max_requests)
        return super()._fetch_ranges(path, ranges, max_requests) if buffers is None else buffers

    def _fetch_unsized(
        self, path: str, ranges: Sequence[ByteRange], max_requests: int
    ) -> list[Buffer] | None:
        """Return the bytes of the ranges, or None if the size of the value is needed to fetch them."""
        if any(length == 0 for _, length in ranges):
            return None
        if not self.supports_suffix_ranges and any(start < 0 or length is None for start, length in ranges):
            return None
        starts = [start for start, _ in ranges]
        stops = [None if length is None else start + length for start, length in ranges]
        results = self._cat_ranges([path] * len(ranges), starts, stops, max_requests, on_error="return")
        for (start, length), result in zip(ranges, results, strict=True):
            if isinstance(result, Exception):
                if classify_error(result) is Presence.MISSING:
                    raise result
                # Usually a range that starts beyond the end, or a suffix range of an empty value.
                return None
            if len(result) > (-start if start < 0 else length or len(result)):
                return None  # The server does not support this kind of range and has sent more bytes.
        return results


class GoogleBackend(ObjectStorageBackend):
    """Google Cloud Storage."""

    def _look_up_container(self, name: str) -> None:
        self.file_system.call("GET", "b/{}", name, json_out=True)


class AzureBackend(ObjectStorageBackend):
    """Azure Blob Storage."""

    supports_suffix_ranges = False
    container_kind = "container"

    def _look_up_container(self, name: str) -> None:
        from fsspec.asyn import sync

        async def look_up() -> Any:
            async with self.file_system.service_client.get_container_client(name) as client:
                return await client.get_container_properties()

        sync(self.file_system.loop, look_up)


class S3Backend(ObjectStorageBackend):
    """S3 and compatible servers."""

    def _look_up_container(self, name: str) -> None:
        self.file_system.call_s3("head_bucket", Bucket=name)
