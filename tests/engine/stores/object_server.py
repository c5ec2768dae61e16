"""A server with the interfaces of S3 and of the XML interface of Google Cloud Storage, in memory.

It counts requests and connections, keeps connections alive, and has conditional writes and uploads in parts, which not
all emulators have. Signatures are not checked.
"""

from __future__ import annotations

import hashlib
import re
import socket
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

__all__ = ["ObjectServer", "object_server"]


class ObjectServer:
    """Buckets in memory.

    Attributes:
        url: the endpoint.
        buckets: bucket -> key -> value.
        requests: the method and the path of each request, with the name of the operation for those of buckets.
        headers: the headers of each request, with lower-case names.
        connections: the number of connections that were accepted.
        status_for: called with method and path; returns an error status, or None.
        code: the code in the body of an error.
        before_response: called with each path before the response.
        region: the region of the buckets, or None. Requests that are signed for another one are redirected.
        max_keys: the number of keys in a page of a listing.
        ignores_ranges: whether the whole value is sent for a range.
        fault: "shift" sends another range, "short" fewer bytes with a matching Content-Length, "truncated" fewer bytes
            than the Content-Length.
    """

    def __init__(self, port: int = 0) -> None:
        self.buckets: dict[str, dict[str, bytes]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.status_for: Callable[[str, str], int | None] = lambda method, path: None
        self.code = "Failure"
        self.before_response: Callable[[str], object] = lambda path: None
        self.region: str | None = None
        self.max_keys = 1000
        self.ignores_ranges = False
        self.fault: str | None = None
        self.lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", port), partial(_Handler, self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="object-server")
        self._thread.start()

    def close(self) -> None:
        """Stop the server and end its connections."""
        self._server.shutdown()
        with self.lock:
            for connection in self._sockets:
                connection.close() if connection.fileno() < 0 else connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()

    def reset(self) -> None:
        """Forget the requests and the number of connections."""
        self.requests.clear()
        self.headers.clear()
        self.connections = 0


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: clients end connections."""


def etag_of(value: bytes) -> str:
    return f'"{hashlib.md5(value).hexdigest()}"'


def generation_of(value: bytes) -> str:
    return str(1 + zlib.crc32(value))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server: ObjectServer, *arguments: object) -> None:
        self.objects = server
        super().__init__(*arguments)  # type: ignore[arg-type]

    def setup(self) -> None:
        super().setup()
        with self.objects.lock:
            self.objects.connections += 1
            self.objects._sockets.add(self.connection)

    def finish(self) -> None:
        super().finish()
        with self.objects.lock:
            self.objects._sockets.discard(self.connection)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        length = headers.pop("length", str(len(body)))
        for name, value in {"Last-Modified": formatdate(0, usegmt=True), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _fail(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    def _answer(self) -> None:
        server = self.objects
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation = "" if key else " list" if "list-type" in query else " delete" if "delete" in query else ""
        operation += "".join(f" {name}" for name in ("uploads", "partNumber", "uploadId") if name in query)
        with server.lock:
            server.requests.append(f"{self.command} {unquote(parts.path)}{operation}")
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
        server.before_response(parts.path)
        status = server.status_for(self.command, parts.path)
        if status is not None:
            self._fail(status, server.code)
            return
        signed = re.search(r"Credential=[^/]+/\d+/([\w-]+)/s3", self.headers.get("Authorization", ""))
        if server.region is not None and signed is not None and signed[1] != server.region:
            self._send(301, x_amz_bucket_region=server.region)
        elif server.region is not None and self.command == "HEAD" and not key:
            self._send(403, x_amz_bucket_region=server.region)
        elif bucket not in server.buckets:
            self._fail(404, "NoSuchBucket")
        elif key:
            self._answer_for_value(server.buckets[bucket], key, query, body)
        elif "list-type" in query:
            self._list(server.buckets[bucket], query)
        elif "delete" in query:
            names = [unquote(name) for name in re.findall(r"<Key>(.*?)</Key>", body.decode())]
            with server.lock:
                for name in names:
                    server.buckets[bucket].pop(name, None)
            deleted = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
            self._send(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())
        else:
            self._send(200)

    def _answer_for_value(
        self, values: dict[str, bytes], key: str, query: dict[str, list[str]], body: bytes
    ) -> None:
        with self.objects.lock:
            value = values.get(key)
        if self.command == "POST" and "uploads" in query:
            upload = f"u{len(self.objects.uploads)}"
            self.objects.uploads[upload] = {}
            self._send(
                200,
                f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode(),
            )
        elif "partNumber" in query:
            self.objects.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = body
            self._send(200, ETag=etag_of(body))
        elif "uploadId" in query:
            parts = self.objects.uploads.pop(query["uploadId"][0])
            if self.command == "POST":
                with self.objects.lock:
                    values[key] = b"".join(parts[number] for number in sorted(parts))
                self._send(
                    200,
                    b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>",
                )
            else:
                self._send(204)
        elif self.command == "PUT":
            with self.objects.lock:
                present = values.get(key)
                create = (
                    self.headers.get("If-None-Match") == "*"
                    or self.headers.get("x-goog-if-generation-match") == "0"
                )
                match = self.headers.get("If-Match")
                generation = self.headers.get("x-goog-if-generation-match", "0")
                if (
                    (create and present is not None)
                    or (match is not None and (present is None or etag_of(present) != match))
                    or (generation != "0" and (present is None or generation_of(present) != generation))
                ):
                    conflict = True
                else:
                    conflict = False
                    values[key] = body
            if conflict:
                self._fail(412, "PreconditionFailed")
            else:
                self._send(200, ETag=etag_of(body), x_goog_generation=generation_of(body))
        elif self.command == "DELETE":
            with self.objects.lock:
                values.pop(key, None)
            self._send(204)
        elif value is None:
            self._fail(404, "NoSuchKey")
        else:
            self._send_value(value)

    def _send_value(self, value: bytes) -> None:
        etag = etag_of(value)
        if self.headers.get("If-Match") not in (None, etag):
            self._fail(412, "PreconditionFailed")
            return
        generation = generation_of(value)
        requested = self.headers.get("Range")
        if requested is None or self.objects.ignores_ranges:
            self._send(200, value, ETag=etag, x_goog_generation=generation)
            return
        first, _, last = requested.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(value) - int(last))
        stop = min(len(value), int(last) + 1) if first and last else len(value)
        if start >= len(value):
            self._fail(416, "InvalidRange")
            return
        fault = self.objects.fault
        start = start + 4 if fault == "shift" else start
        body = value[start:stop] if fault in (None, "shift") else value[start : stop - 3]
        more = {"length": str(stop - start)} if fault == "truncated" else {}
        more |= {"ETag": etag, "x_goog_generation": generation}
        self._send(206, body, Content_Range=f"bytes {start}-{stop - 1}/{len(value)}", **more)
        self.close_connection = fault == "truncated"

    def _list(self, values: dict[str, bytes], query: dict[str, list[str]]) -> None:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        after = query.get("continuation-token", [""])[0]
        with self.objects.lock:
            names = sorted(values)
        entries: list[str] = []
        for name in names:
            if name.startswith(prefix):
                rest = name[len(prefix) :]
                is_folder = delimiter != "" and delimiter in rest
                entry = prefix + rest.partition(delimiter)[0] + delimiter if is_folder else name
                if entry > after and entry not in entries[-1:]:
                    entries.append(entry)
        page = entries[: self.objects.max_keys]
        text = "".join(
            f"<CommonPrefixes><Prefix>{escape(entry)}</Prefix></CommonPrefixes>"
            if delimiter and entry.endswith(delimiter)
            else f"<Contents><Key>{escape(entry)}</Key><Size>{len(values[entry])}</Size>"
            f"<LastModified>2025-01-01T00:00:00.000Z</LastModified><ETag>{etag_of(values[entry])}</ETag></Contents>"
            for entry in page
        )
        more = len(entries) > len(page)
        text += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        self._send(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815


@contextmanager
def object_server(*buckets: str) -> Iterator[ObjectServer]:
    """Run an ObjectServer with empty buckets."""
    server = ObjectServer()
    server.buckets.update({bucket: {} for bucket in buckets})
    try:
        yield server
    finally:
        server.close()


if __name__ == "__main__":
    ObjectServer(int(sys.argv[1])).buckets["bucket"] = {}
