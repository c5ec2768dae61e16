"""An HTTP server on the loopback interface that serves the statistics of a mount as Prometheus text."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from zarrfs.errors import MountError

__all__ = ["MetricsServer"]

HOST = "127.0.0.1"

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

TIMEOUT_SECONDS = 10.0
"""A client that sends nothing for this time is disconnected."""


class MetricsServer:
    """Serves the text that ``text`` returns at ``/metrics``, until it is closed. ``port`` 0 chooses a free port.

    Raises MountError if the port is in use or not allowed.
    """

    def __init__(self, port: int, text: Callable[[], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = TIMEOUT_SECONDS

            def do_GET(self) -> None:
                if self.path.partition("?")[0] not in ("/metrics", "/"):
                    self.send_error(404, "the metrics are at /metrics")
                    return
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: the requests come at regular intervals."""

        try:
            self._server = ThreadingHTTPServer((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise MountError(
                f"the metrics cannot be served on {HOST}:{port}: {reason}; choose another port (--metrics)"
            ) from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.2},
            name="zarrfs-metrics",
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
