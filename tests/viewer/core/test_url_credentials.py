"""Credentials of URLs: storage options by origin, and the keyring."""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from zarrfs_viewer import url_credentials
from zarrfs_viewer.images.opening import open_with_credentials
from zarrfs_viewer.url_credentials import find_options, forget, origin_of, remember, storage_options

import zarrfs
from zarrfs.errors import UnsupportedError, ZarrError


@pytest.fixture(autouse=True)
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """A keyring in memory, instead of that of the user."""
    stored: dict[tuple[str, str], str] = {}
    module = SimpleNamespace(
        set_password=lambda service, name, password: stored.__setitem__((service, name), password),
        get_password=lambda service, name: stored.get((service, name)),
        delete_password=lambda service, name: stored.pop((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setattr(url_credentials, "_known", {})
    return stored


@pytest.mark.parametrize(
    ("location", "origin"),
    [
        ("s3://bucket/a/b.zarr", "s3://bucket"),
        ("HTTPS://user:word@Host.org:8080/a?b=c", "https://host.org:8080"),
        ("/data/a.zarr", None),
        ("file:///data/a.zarr", None),
        ("http://[broken", None),
        ("https://", None),
    ],
)
def test_the_origin_of_a_location(location: str, origin: str | None) -> None:
    assert origin_of(location) == origin


def test_values_become_storage_options() -> None:
    assert storage_options("s3://b", {"key": "k", "secret": "s", "token": ""}) == {"key": "k", "secret": "s"}
    assert storage_options("https://h", {"user": "", "password": "", "token": ""}) == {}
    bearer = storage_options("https://h", {"user": "u", "token": "abc"})
    assert bearer == {"headers": {"Authorization": "Bearer abc"}}


def test_credentials_are_kept_in_the_keyring(keyring: dict[tuple[str, str], str]) -> None:
    assert find_options("s3://bucket/x") is None
    remember("s3://bucket", {"key": "k", "secret": "s"}, in_keyring=True)
    assert find_options("s3://bucket/x") == {"key": "k", "secret": "s"}
    url_credentials._known.clear()  # another process
    assert find_options("s3://bucket/y") == {"key": "k", "secret": "s"}
    assert find_options("s3://other/y") is None
    forget("s3://bucket")
    assert keyring == {}
    assert find_options("s3://bucket/x") is None
    remember("s3://bucket", {"key": "k"}, in_keyring=False)
    assert keyring == {}
    assert find_options("s3://bucket/x") == {"key": "k"}


def test_without_keyring_credentials_last_until_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UnsupportedError, match="pip install"):
        remember("s3://bucket", {"key": "k"}, in_keyring=True)
    assert find_options("s3://bucket/x") == {"key": "k"}
    forget("s3://bucket")
    assert find_options("s3://bucket/x") is None


class ProtectedHandler(SimpleHTTPRequestHandler):
    """Files for one user."""

    def do_GET(self) -> None:
        expected = "Basic " + base64.b64encode(b"me:secret word").decode()
        if self.headers.get("Authorization") == expected:
            super().do_GET()
        else:
            self.send_error(401)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(12).reshape(3, 4), chunks=(3, 4))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(ProtectedHandler, directory=str(tmp_path))) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def test_a_protected_server_is_opened_with_credentials(server: str) -> None:
    with pytest.raises(ZarrError, match="Credentials of a URL"):
        open_with_credentials(f"{server}/a.zarr", "")
    remember(server, {"user": "me", "password": "secret word"}, in_keyring=False)
    array = open_with_credentials(f"{server}/a.zarr", "")
    assert array[1, 2] == 6
    array.store.close()
