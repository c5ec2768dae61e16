"""The clients of servers with their connections, which all stores of the process share.

A client belongs to an endpoint and credentials. Opening an array again then needs no new connection, and no limit of a
server for connections is exceeded by many open arrays.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["shared_client"]

MAX_CLIENTS = 32
"""The maximum number of clients that are kept for further stores."""

_clients: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.Lock()
_clients_of_parents: list[Any] = []


def _after_fork() -> None:
    # The child must not use, and not close, the connections of its parent.
    global _lock
    _lock = threading.Lock()
    _clients_of_parents.extend(_clients.values())
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def shared_client(key: Hashable, create: Callable[[], Any]) -> Any:
    """Return the client with this key, or else that which ``create`` returns. Thread-safe."""
    with _lock:
        if key not in _clients:
            _clients[key] = create()
            if len(_clients) > MAX_CLIENTS:
                _clients.popitem(last=False)  # Stores that use it keep it.
        _clients.move_to_end(key)
        return _clients[key]
