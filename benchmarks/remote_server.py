"""A web server with a fixed latency per request: ``python -m benchmarks.remote_server DIRECTORY SECONDS RATE``.

RATE is the number of bytes per second of each connection; 0 sets no limit.

It prints its port on the first line. Each line on the standard input is answered with one line on the standard output:
a JSON list of the paths that were requested since the previous one. The server answers GET and HEAD with byte ranges,
keeps connections alive, and handles any number of requests at the same time.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

__all__ = ["LatencyServer"]

PIECE_NBYTES = 1 << 20
"""The number of bytes that are sent at a time if the rate is limited."""

RANGE = re.compile(rb"bytes=(\d*)-(\d*)")


class LatencyServer:
    """Serves the files of a directory. Each request is answered after ``latency`` seconds, with ``rate`` bytes per
    second (0: at once).
    """

    def __init__(self, directory: Path, latency: float, rate: float) -> None:
        self._directory = directory
        self._latency = latency
        self._rate = rate
        self._contents: dict[str, bytes | None] = {}
        self.requests: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, target = head.split(b" ", 2)[:2]
                path = unquote(target.partition(b"?")[0].decode())
                self.requests.append(f"{method.decode()} {path}")
                await asyncio.sleep(self._latency)
                await self._write(writer, memoryview(self._response(method, path, head)))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # The client, or the benchmark, has ended.
        finally:
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter, response: memoryview) -> None:
        if not self._rate:
            writer.write(response)
            await writer.drain()
            return
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for start in range(0, len(response), PIECE_NBYTES):
            writer.write(response[start : start + PIECE_NBYTES])
            await writer.drain()
            await asyncio.sleep(begin + min(start + PIECE_NBYTES, len(response)) / self._rate - loop.time())

    def _response(self, method: bytes, path: str, head: bytes) -> bytes:
        content = self._content(path)
        if content is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        status = b"200 OK"
        # Clients of S3 require an ETag, those of Google Cloud Storage also the time.
        fields = b'Accept-Ranges: bytes\r\nETag: "1"\r\nLast-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n'
        if match := RANGE.search(head):
            low, high = self._bounds(match, len(content))
            fields += b"Content-Range: bytes %d-%d/%d\r\n" % (low, high - 1, len(content))
            content, status = content[low:high], b"206 Partial Content"
        fields += b"Content-Length: %d\r\n" % len(content)
        return b"HTTP/1.1 " + status + b"\r\n" + fields + b"\r\n" + (b"" if method == b"HEAD" else content)

    @staticmethod
    def _bounds(match: re.Match[bytes], size: int) -> tuple[int, int]:
        first, last = match.groups()
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(size, int(last) + 1) if last else size

    def _content(self, path: str) -> bytes | None:
        if path not in self._contents:
            file = self._directory / path.lstrip("/")
            self._contents[path] = file.read_bytes() if file.is_file() else None
        return self._contents[path]


async def run(directory: Path, latency: float, rate: float) -> None:
    server = LatencyServer(directory, latency, rate)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, limit=1 << 20)
    print(listening.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(server.requests), flush=True)
        server.requests.clear()
    listening.close()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
