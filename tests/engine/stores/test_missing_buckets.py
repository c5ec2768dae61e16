"""A bucket or container that does not exist is named in errors. The servers are emulators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from click.testing import CliRunner
from zarrfs_viewer.images.opening import open_with_credentials

import zarrfs
from tests.engine.stores.every_store import (
    FSSPEC_AZURE,
    FSSPEC_S3,
    azure_options,
    gcs_options,
    gcs_store,
    s3_options,
    s3_store,
    stop_all_servers,
)
from zarrfs.cli.main import main
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.errors import LocationNotFoundError, NodeNotFoundError, StoreError, ZarrError
from zarrfs.storage import RemoteStore, RetryStore

pytestmark = pytest.mark.emulators

EMPTY = "no Zarr array or group here .* the location is empty"


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    yield
    stop_all_servers()


@pytest.fixture(params=["s3", "gs", "abfs", "s3 with fsspec", "abfs with fsspec"])
def missing(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any], str]:
    """The URL of a missing bucket, storage options, and the part of messages that names it."""
    protocol, _, library = request.param.partition(" ")
    make_options = {"s3": s3_options, "gs": gcs_options, "abfs": azure_options}[protocol]
    more = {"s3": FSSPEC_S3, "abfs": FSSPEC_AZURE}[protocol] if library else {}
    kind = "container" if protocol == "abfs" else "bucket"
    problem = f"the {kind} 'missing' does not exist; create it, or check its name"
    return f"{protocol}://missing", {**make_options(), **more}, problem


def test_reading_from_a_missing_bucket_names_it(
    missing: tuple[str, dict[str, Any], str], tmp_path: Path
) -> None:
    url, options, problem = missing
    texts = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in options.items()
    ]
    arguments = [word for text in texts for word in ("--storage-option", text)]
    for command in (
        ["tree", url],
        ["ls", f"{url}/image.zarr"],
        ["info", f"{url}/image.zarr"],
        ["du", f"{url}/image.zarr"],
        ["copy", f"{url}/image.zarr", str(tmp_path / "t.zarr")],
        ["mount", f"{url}/image.zarr", str(tmp_path)],
    ):
        result = CliRunner().invoke(main, [*command, *arguments])
        assert isinstance(result.exception, ZarrError), command
        message = str(result.exception)
        assert message.startswith(command[1])
        assert message.endswith(f": {problem}, and the server and the account (storage options)")
        assert result.output == ""
    with pytest.raises(ZarrError, match=f"{url}/a.zip .*: {problem}"):
        zarrfs.open(f"zip::{url}/a.zip", storage_options=options)
    with RemoteStore(url, storage_options=options) as store, pytest.raises(ZarrError, match=problem):
        open_with_credentials(store, "image.zarr")  # as the viewer opens locations


def test_writing_to_a_missing_bucket_names_it(
    missing: tuple[str, dict[str, Any], str], tmp_path: Path
) -> None:
    url, options, problem = missing
    zarrfs.create_array(tmp_path / "s.zarr", data=np.arange(9))
    for dry_run in (True, False):
        with pytest.raises(LocationNotFoundError, match=f"^{url}/t.zarr: {problem}"):
            zarrfs.tools.convert(
                tmp_path / "s.zarr", f"{url}/t.zarr", storage_options=options, dry_run=dry_run
            )
    with RemoteStore(url, storage_options=options) as store:
        with pytest.raises(StoreError, match=f"^{url}/key cannot be written: {problem}"):
            store.set("key", b"1")
        for wrapper in (RetryStore(store), PrefixStore(store, "a")):
            assert str(wrapper.missing_container()).startswith(problem)


@pytest.mark.parametrize("library", ["obstore", "fsspec"])
@pytest.mark.parametrize("protocol", ["s3", "abfs"])
def test_chunks_of_a_bucket_that_was_deleted_are_not_missing(protocol: str, library: str) -> None:
    """The interface of Google that fsspec uses replies with 404 to both, and does not tell them apart."""
    options = s3_options() if protocol == "s3" else azure_options()
    more = (FSSPEC_S3 if protocol == "s3" else FSSPEC_AZURE) if library == "fsspec" else {}
    with RemoteStore(f"{protocol}://deleted", storage_options={**options, **more}) as store:
        file_system = fsspec.filesystem(protocol, **options, skip_instance_cache=True)
        file_system.mkdir("deleted")
        array = zarrfs.create_array(store, "a", data=np.arange(9), chunks=3)
        store.delete_prefix("")
        assert array[:3].tolist() == [0, 0, 0]
        file_system.rmdir("deleted")
        with pytest.raises(StoreError, match="'deleted' does not exist; create it, or check its name"):
            array[:3]
        with pytest.raises(StoreError, match="'deleted' does not exist; create it, or check its name"):
            array[:]


@pytest.mark.parametrize("make", [lambda: s3_store(FSSPEC_S3), gcs_store])
def test_a_bucket_that_exists_or_that_may_not_be_looked_up_is_not_missing(
    make: Callable[[], RemoteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    with make() as store:
        assert store.missing_container() is None
        with pytest.raises(NodeNotFoundError, match=EMPTY):
            zarrfs.open(store)

        def refuse(name: str) -> Any:
            raise PermissionError("Access Denied")

        monkeypatch.setattr(store._backend, "_look_up_container", refuse)
        assert store.missing_container() is None
        with pytest.raises(NodeNotFoundError, match=EMPTY):
            zarrfs.open(store)
