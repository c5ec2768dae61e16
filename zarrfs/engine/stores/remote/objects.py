"""Backends of object stores, which fetch ranges without knowing the size of a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange
from zarrfs.engine.stores.remote.backend import Backend
from zarrfs.engine.stores.remote.presence import Presence, classify_error, http_status

__all__ = ["AzureBackend", "GoogleBackend", "ObjectStorageBackend", "S3Backend"]


class ObjectStorageBackend(Backend):
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

    max_deleted_together = 1000

    def _look_up_container(self, name: str) -> None:
        self.file_system.call_s3("head_bucket", Bucket=name)

    def _information(self, path: str) -> Mapping[str, Any]:
        # For a missing key ``info`` sends two requests: HEAD, and a listing. The reply to GET has the same fields, and
        # its error also states whether the key or the bucket is missing.
        from fsspec.asyn import sync

        try:
            found: Mapping[str, Any] = sync(self.file_system.loop, self._request_first_byte, path)
        except Exception as error:
            if http_status(error) == 416:  # an empty value has no first byte
                return super()._information(path)
            raise
        return found

    async def _request_first_byte(self, path: str) -> Mapping[str, Any]:
        bucket, key, version = self.file_system.split_path(path)
        options = {"VersionId": version} if version else {}
        reply = await self.file_system._call_s3(
            "get_object", Bucket=bucket, Key=key, Range="bytes=0-0", **options
        )
        try:
            size = reply.get("ContentRange", "").rpartition("/")[2]
            if not size.isdecimal():
                # The server has not applied the range, and its reply is the whole value, which is not received.
                size = reply["ContentLength"]
            else:
                await reply["Body"].read()  # The connection is used again.
        finally:
            reply["Body"].close()
        return {"type": "file", "size": int(size), "ETag": reply.get("ETag")}

    def is_empty(self, path: str) -> bool:
        bucket, key, _ = self.file_system.split_path(path)
        try:
            reply = self.file_system.call_s3(
                "list_objects_v2", Bucket=bucket, Prefix=f"{key}/" if key else "", MaxKeys=1
            )
        except Exception:
            return False  # Listing may not be permitted, and other requests report other errors.
        return not reply.get("Contents")

    def delete_together(self, paths: Sequence[str]) -> bool:
        bucket = self.file_system.split_path(paths[0])[0]
        objects = [{"Key": self.file_system.split_path(path)[1]} for path in paths]
        try:
            result = self.file_system.call_s3(
                "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
            )
        except Exception:
            # Not all servers support this, and some credentials permit single deletions only. These report the error.
            return False
        return not result.get("Errors")

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
        buffers = self._fetch_unsized(path, [ByteRange(0)], 1)
        return super()._fetch(path, max_nbytes) if buffers is None else buffers[0]
