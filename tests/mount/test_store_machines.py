"""Random changes of a zip file, and of a directory on a web server that fails, and random reads in a mount of them.

The model is that of ``test_reading_machine.py``. The requests to the server are real.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

import zarrfs
from tests.mount.test_reading_machine import ReadingMachine
from tests.mount.test_tree import list_names
from tests.mount.web_server import FAULTS, FaultyWebServer
from tests.processes import POLL_SECONDS
from tests.threads import Clock
from zarrfs.engine.stores.wrappers.timeout import TimeoutStore
from zarrfs.files.content import streams
from zarrfs.files.content.blocks import BlockPool
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.sources import open_sources
from zarrfs.mount.tree.tree import Tree

EXAMPLES = int(os.environ.get("ZARRFS_TEST_EXAMPLES", "8"))
"""The number of random sequences of operations. A thorough run uses some thousands."""

TIMEOUT_SECONDS = 60.0
PHASES = (Phase.explicit, Phase.generate)
"""A failure is not simplified: which request fails depends on threads, and each attempt takes time."""

HANG_SECONDS = 0.3
"""The time limit while a response hangs."""


class StoreMachine(ReadingMachine):
    """A hierarchy in ``self.directory``, from which the mounted store is made after each change."""

    def _begin(self, options: MountOptions) -> None:
        self.directory = tempfile.mkdtemp()
        zarrfs.create_group(self.directory)
        self.clock = Clock()
        self.groups, self.arrays, self.versions, self.handles = {""}, {}, {}, {}
        self._publish()
        (root,) = open_sources([self._location()], options, 1 << 20, zarrfs.Access())
        self.store = root.store
        self.pool = BlockPool(1 << 20, clock=self.clock)
        self.operations = ZarrOperations(Tree(root, "root", clock=self.clock), lambda: None, pool=self.pool)

    def _location(self) -> str:
        raise NotImplementedError

    def _publish(self) -> None:
        raise NotImplementedError

    def _settle(self) -> None:
        self._publish()
        super()._settle()


class ZipMachine(StoreMachine):
    """The store is a zip file that is replaced."""

    @initialize()
    def create(self) -> None:
        self.archive = Path(tempfile.mkdtemp()) / "a.zip"
        self._begin(MountOptions())

    def _location(self) -> str:
        return str(self.archive)

    def _publish(self) -> None:
        temporary = self.archive.with_suffix(".new")
        with zipfile.ZipFile(temporary, "w") as archive:
            for directory, _, names in os.walk(self.directory):
                for name in names:
                    path = os.path.join(directory, name)
                    archive.write(path, os.path.relpath(path, self.directory))
        os.replace(temporary, self.archive)
        # An open file of the old archive is stale, even if its array is in the new one, too.
        self.versions = {path: version + 1 for path, version in self.versions.items()}

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "archive"):
            shutil.rmtree(self.archive.parent)


class WebMachine(StoreMachine):
    """The store is on a web server, of which single responses are faulty."""

    server: FaultyWebServer

    @initialize(retries=st.sampled_from([0, 0, 1]))
    def create(self, retries: int) -> None:
        self.fault_number = 0
        self._begin(MountOptions(timeout=TIMEOUT_SECONDS, retries=retries))
        self._limit(TIMEOUT_SECONDS)

    def _location(self) -> str:
        self.server = FaultyWebServer(Path(self.directory))
        return self.server.url

    def _publish(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Consolidated metadata are not part of the specification.
            zarrfs.consolidate_metadata(self.directory)

    def teardown(self) -> None:
        if hasattr(self, "server"):
            self.server.close()
        super().teardown()

    def _limit(self, seconds: float) -> None:
        """Set the time in which the server has to respond.

        On a busy machine responses take seconds. Known metadata, which can be old, would then be used.
        """
        assert isinstance(self.store, TimeoutStore)
        self.store.timeout = self.store._stale = seconds

    def _attempt(self, requests: int | None, operation: Any, *arguments: Any) -> Any:
        """Return the result of an operation, or its error number. After a failure of the server it is repeated."""
        fault = None
        # Known metadata, which can be old, is used while the server does not respond or the root cannot be read. A file
        # that it does not contain is then reported as missing.
        is_from_metadata = operation != self.operations.read
        if requests is not None:
            self.fault_number += 1
            fault = FAULTS[self.fault_number % len(FAULTS)]
        self._limit(HANG_SECONDS if fault == "hang" else TIMEOUT_SECONDS)
        self.server.fail(fault, requests or 1)
        try:
            found = operation(*arguments)
            if fault != "hang" and not (self.server.has_failed and is_from_metadata):
                return found
        except OSError as error:
            # On a busy machine other requests can exceed the short time limit, too.
            is_failure = self.server.has_failed or (fault == "hang" and error.errno == errno.ETIMEDOUT)
            if not is_failure or (error.errno not in (errno.EIO, errno.ETIMEDOUT) and not is_from_metadata):
                return error.errno
        finally:
            self.store.has_failed = self.server.has_failed  # type: ignore[attr-defined]
            self._limit(TIMEOUT_SECONDS)
            self.server.resume()
            self.server.fail(None)
        assert isinstance(self.store, TimeoutStore)
        while self.store._is_hung:
            threading.Event().wait(POLL_SECONDS)
        self._settle()
        return self._attempt(None, operation, *arguments)


@pytest.mark.parametrize("machine", [ZipMachine, WebMachine])
def test_store_machine(
    machine: type[StoreMachine], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Chunks are compared with the store at each read, because they have no clock of the test.
    monkeypatch.setattr(streams, "REVALIDATION_SECONDS", 0.0)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=25,
            deadline=None,
            phases=PHASES,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    assert all("Traceback" not in (record.exc_text or "") for record in caplog.records)


def test_the_members_of_a_new_group_are_listed_after_a_failure_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = WebMachine()
    machine.fault_number = 0
    machine._begin(MountOptions(timeout=TIMEOUT_SECONDS, retries=0))
    tree = machine.operations._tree
    try:
        machine._root().create_group("g")
        machine._settle()
        # The group is found although the consolidated metadata that name it cannot be read.
        machine.server.fail("status 503")
        machine.operations.getattr("/g")
        assert machine.server.has_failed
        machine._root().create_array("g/a", data=np.arange(5))
        machine._settle()
        assert "a.npy" in list_names(tree, "/g")
    finally:
        machine.teardown()


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "hang"])
@pytest.mark.usefixtures("caplog")
def test_the_names_are_known_or_current_if_the_root_cannot_be_read(fault: str) -> None:
    machine = WebMachine()
    machine.fault_number = 0
    machine._begin(MountOptions(timeout=TIMEOUT_SECONDS, retries=0))
    machine._limit(TIMEOUT_SECONDS)
    try:
        for name in ("kept", "removed"):
            machine._root().create_group(name)
        machine._settle()
        assert {"kept", "removed"} <= set(machine.operations.readdir("/", None))
        shutil.rmtree(Path(machine.directory, "removed"))
        machine._settle()
        machine.server.fail(fault)
        assert set(machine.operations.readdir("/", None)) - {"removed"} == {".", "..", ".group.json", "kept"}
        machine._settle()
        assert set(machine.operations.readdir("/", None)) == {".", "..", ".group.json", "kept"}
    finally:
        machine.teardown()
