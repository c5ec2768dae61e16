"""Entry points of an installed package are used like built-in features. Errors of a broken one name its package.

The package is a real distribution (a module and its ``dist-info``) in a directory on the path of a new interpreter.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zarrfs.plugins import install_hint

NAME = "example_extensions"

MODULE = '''
import numpy as np
from zarrfs.engine.chunks.chunk_grids import ChunkGrid
from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding
from zarrfs.engine.codecs.base import ArrayArrayCodec, BytesBytesCodec, CodecError
from zarrfs.engine.dtypes.base import DataType, DataTypeFamily
from zarrfs.engine.indexing.axes import RegularAxis
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.view import View


class Xor(BytesBytesCodec):
    """Every byte xor a mask."""

    name = "example.xor"

    def __init__(self, mask):
        self.mask = mask

    @classmethod
    def from_configuration(cls, configuration):
        return cls(configuration["mask"])

    def configuration(self):
        return {"mask": self.mask}

    def encoded_size(self, size):
        return size

    def encode(self, data):
        return (np.frombuffer(data, np.uint8) ^ self.mask).tobytes()

    def decode(self, data, size, out=None):
        if size is not None and len(memoryview(data)) != size:
            raise CodecError("wrong size")
        return self.encode(data)


class Negate(ArrayArrayCodec):
    """Every number with the other sign."""

    name = "example.negate"

    @classmethod
    def from_configuration(cls, configuration):
        return cls()

    def configuration(self):
        return {}

    def encoded_spec(self, spec):
        return type(spec)(spec.shape, spec.dtype, -spec.fill_value)

    def encode(self, array, spec):
        return -array

    def decode(self, array, spec):
        return -array

    def encoded_region(self, region, spec):
        return region


class Degrees(DataTypeFamily):
    """Angles: a float32, whose fill value is text with a unit."""

    def from_configuration(self, name, configuration, where):
        return DataType(name, np.dtype("float32"), dict(configuration))

    def fill_from_json(self, data_type, value, where):
        return np.float32(value.removesuffix(" deg"))

    def fill_to_json(self, data_type, value):
        return f"{float(value)} deg"


DEGREES = Degrees()


class Doubling:
    """Chunks of lengths 1, 2, 4 ..."""

    def __init__(self, length):
        self.length = length

    def find(self, index):
        return (index + 1).bit_length() - 1

    def locate(self, indices):
        return np.array([self.find(int(index)) for index in indices], np.int64)

    def begin(self, chunk):
        return (1 << chunk) - 1

    def size(self, chunk):
        return 1 << chunk


class DoublingGrid(ChunkGrid):
    name = "example.doubling"
    chunk_shape = None

    def __eq__(self, other):
        return isinstance(other, DoublingGrid)

    def __hash__(self):
        return 1

    @classmethod
    def from_configuration(cls, configuration, where):
        return cls()

    def configuration(self):
        return {}

    def axis(self, axis, length):
        return Doubling(length)

    def check(self, shape, where):
        pass


class Letters(ChunkKeyEncoding):
    """Chunk (0, 2) is chunk/ac."""

    name = "example.letters"

    def __eq__(self, other):
        return isinstance(other, Letters)

    def __hash__(self):
        return 1

    @classmethod
    def from_configuration(cls, configuration, where):
        return cls()

    def configuration(self):
        return {}

    def encode(self, coords):
        return "chunk/" + "".join(chr(97 + c) for c in coords)

    def decode(self, key):
        return tuple(ord(c) - 97 for c in key[6:]) if key.startswith("chunk/") else None


def open_shelf(url, mode):
    return LocalStore(url.partition("://")[2], read_only=mode == "r")


class CountView(View):
    suffix = ".count"
    listed = True

    def unsupported_reason(self, presented):
        return None

    def content(self, presented):
        return VirtualFileContent([str(presented.array.size).encode()])


def broken_store(url, mode):
    return url


class RaisingStore(LocalStore):
    """A store whose methods raise exceptions that are not StoreErrors."""

    def get(self, key):
        raise ZeroDivisionError("no value")

    get_within = get_ranges = get_into = size = lambda self, *arguments: 1 / 0

    def list_dir(self, prefix=""):
        raise OSError(5, "Input/output error")


def raising_store(url, mode):
    if url.endswith("never"):
        raise KeyError("cannot be opened")
    return RaisingStore(url.partition("://")[2])


class RaisingCodec(Xor):
    """Fails when it is used."""

    name = "example.raising"

    def encode(self, data):
        raise ZeroDivisionError("cannot encode")

    def decode(self, data, size, out=None):
        raise ZeroDivisionError("cannot decode")


class RaisingGrid(DoublingGrid):
    name = "example.raising"

    def axis(self, axis, length):
        return RaisingAxis(length)


class RaisingAxis(Doubling):
    def size(self, chunk):
        raise ZeroDivisionError("no size")

    find = size


class RaisingKeys(Letters):
    name = "example.raising"

    def encode(self, coords):
        raise ZeroDivisionError("no key")


class RaisingType(Degrees):
    def fill_from_json(self, data_type, value, where):
        raise ZeroDivisionError("no fill value")


RAISING_TYPE = RaisingType()
'''

ENTRY_POINTS = f"""
[zarrfs.codecs]
example.xor = {NAME}:Xor
example.negate = {NAME}:Negate
example.raising = {NAME}:RaisingCodec
example.missing = {NAME}:Nothing
example.absent = {NAME}_which_is_not_there:Codec
example.grid_as_codec = {NAME}:DoublingGrid

[zarrfs.data_types]
example.degrees = {NAME}:DEGREES
example.class = {NAME}:Degrees
example.raising = {NAME}:RAISING_TYPE

[zarrfs.chunk_grids]
example.doubling = {NAME}:DoublingGrid
example.raising = {NAME}:RaisingGrid
example.missing = {NAME}:Nothing

[zarrfs.chunk_key_encodings]
example.letters = {NAME}:Letters
example.raising = {NAME}:RaisingKeys
example.missing = {NAME}:Nothing

[zarrfs.stores]
shelf = {NAME}:open_shelf
broken = {NAME}:broken_store
raising = {NAME}:raising_store
missing = {NAME}:Nothing

[zarrfs.views]
count = {NAME}:CountView
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with the installed package."""
    folder = tmp_path / "site"
    info = folder / f"{NAME}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{NAME}.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example-extensions\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def run(site: Path, script: str, *arguments: Path) -> str:
    """Run a script with the package installed; return what it prints."""
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), root])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WRITE_AND_READ = """
import json, sys
import numpy as np
import zarrfs
from zarrfs.files.views import all_views

where = f"shelf://{sys.argv[1]}"
array = zarrfs.create_array(
    where,
    "a",
    shape=(6, 7),
    dtype={"name": "example.degrees", "configuration": {"turn": 360}},
    fill_value=-1.5,
    chunks={"name": "example.doubling", "configuration": {}},
    chunk_key_encoding={"name": "example.letters"},
    codecs=["example.negate", {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "example.xor", "configuration": {"mask": 85}}],
)
assert array.chunks == ((1, 2, 4), (1, 2, 4))
expected = np.full((6, 7), -1.5, "f4")
expected[2:, ::2] = np.arange(16).reshape(4, 4)
array[2:, ::2] = expected[2:, ::2]
again = zarrfs.open_array(where, "a", "r+", cache_size=0)
assert (again[...] == expected).all() and (again[3, -1:1:-2] == expected[3, -1:1:-2]).all()
assert again.nchunks_initialized == 6, again.nchunks_initialized
assert bytes(again.read_bytes(8, 60)) == expected.tobytes()[8:68]
again.resize(9, 7)
again[8, 0] = expected[0, 0] = again[0, 0] = 3
assert (again[:6] == expected).all() and (again[6:8] == -1.5).all() and again[8].tolist() == [3] + [-1.5] * 6
document = json.load(open(f"{sys.argv[1]}/a/zarr.json"))
assert document["fill_value"] == "-1.5 deg"
assert document["data_type"] == {"name": "example.degrees", "configuration": {"turn": 360}}
# The stored bytes and keys are those of the codec and the key encoding.
stored = np.frombuffer(open(f"{sys.argv[1]}/a/chunk/ba", "rb").read(), "u1") ^ 85
assert stored.view("<f4").tolist() == [1.5, -0.0], stored.view("<f4")
# In shards, as a compressor besides others.
sharded = zarrfs.create_array({}, data=np.arange(64), chunks=(4,), shards=(16,), compressors=["zstd",
    {"name": "example.xor", "configuration": {"mask": 1}}])
assert (sharded[3:50:5] == np.arange(64)[3:50:5]).all()
assert ".count" in [view.suffix for view in all_views()]
print("fine")
"""


def test_extensions_of_an_installed_package_write_and_read(site: Path, tmp_path: Path) -> None:
    assert run(site, WRITE_AND_READ, tmp_path / "store") == "fine\n"


BROKEN = """
import json, sys
import zarrfs

def message(**options):
    try:
        zarrfs.create_array({}, shape=(4,), dtype=options.pop("dtype", "u1"), **options)
    except zarrfs.UnsupportedError as error:
        return str(error)

def opening(url):
    try:
        zarrfs.open(url)
    except zarrfs.ZarrError as error:
        return str(error)

print(json.dumps([
    message(compressors="example.missing"),
    message(compressors="example.absent"),
    message(compressors="example.grid_as_codec"),
    message(dtype="example.class"),
    message(chunks={"name": "example.missing"}),
    message(chunk_key_encoding={"name": "example.missing"}),
    message(compressors="example.unheard_of"),
    opening("broken://x"),
    opening("missing://x"),
]))
"""


def test_the_error_for_a_broken_plugin_names_its_package(site: Path) -> None:
    import json

    messages = json.loads(run(site, BROKEN))
    parts = [
        ["'example.missing' of example-extensions", "group zarrfs.codecs", "has no attribute 'Nothing'"],
        ["'example.absent' of example-extensions", "No module named"],
        ["'example.grid_as_codec' of example-extensions", "expected a subclass of Codec"],
        ["'example.class' of example-extensions", "expected an instance of DataTypeFamily"],
        ["'example.missing' of example-extensions", "group zarrfs.chunk_grids"],
        ["'example.missing' of example-extensions", "group zarrfs.chunk_key_encodings"],
        ["unknown codec 'example.unheard_of'"],
        ["broken://x", "expected a Store"],
        ["'missing' of example-extensions", "group zarrfs.stores"],
    ]
    assert len(messages) == len(parts)
    for message, expected in zip(messages, parts, strict=True):
        assert message is not None
        for part in expected:
            assert part in message


def test_a_broken_view_is_skipped_with_a_warning(site: Path) -> None:
    info = site / f"{NAME}-1.0.dist-info" / "entry_points.txt"
    info.write_text(f"[zarrfs.views]\ncount = {NAME}:CountView\nbroken = {NAME}:Nothing\n")
    script = """
import logging, sys
logging.basicConfig(stream=sys.stdout)
from zarrfs.files.views import all_views
print([view.suffix for view in all_views()])
"""
    printed = run(site, script)
    assert "'broken' of example-extensions" in printed
    assert "'.json', '.count']" in printed


def test_a_hint_names_packages_that_pip_can_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """zarrfs itself may be installed from a checkout and not be in a package index."""
    hint = install_hint("hdf5")
    assert hint.startswith("pip install 'h5py")
    assert "zarrfs" not in hint
    assert install_hint("http").count("'") == 4

    def unknown(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", unknown)
    assert install_hint("hdf5") == "pip install 'zarrfs[hdf5]'"


HINTS = """
import zarrfs
from zarrfs.engine.stores.memory import MemoryStore

class Web(MemoryStore):
    listable = False
    def list_dir(self, prefix=""):
        raise zarrfs.StoreError("cannot be listed")

store = Web()
group = zarrfs.create_group(store, attributes={"children": ["a", "b"]})
group.create_array("a", shape=3, dtype="u1")
print(list(zarrfs.open_group(store)))
"""


def test_a_package_names_the_members_of_groups_in_stores_that_cannot_list(tmp_path: Path) -> None:
    info = tmp_path / "naming-1.0.dist-info"
    info.mkdir()
    (tmp_path / "naming.py").write_text("def children(group):\n    return group.attrs.get('children')\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: naming\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[zarrfs.member_names]\nchildren = naming:children\n")
    assert run(tmp_path, HINTS) == "['a']\n"


RAISING = """
import json, sys
import numpy as np
import zarrfs

where = sys.argv[1]
messages = []

def attempt(action):
    try:
        action()
    except zarrfs.ZarrError as error:
        messages.append(f"{type(error).__name__}: {error}")
    else:
        messages.append("nothing was raised")

def document(name, **changes):
    array = zarrfs.create_array(f"{where}/{name}", data=np.arange(4, dtype="f4"), chunks=2, compressors=None)
    path = f"{where}/{name}/zarr.json"
    made = json.load(open(path))
    made.update(changes)
    json.dump(made, open(path, "w"))
    return f"{where}/{name}"

zarrfs.create_group(where)
bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
codec = document("codec", codecs=[bytes_codec, {"name": "example.raising", "configuration": {"mask": 1}}])
attempt(lambda: zarrfs.open_array(codec)[...])
attempt(lambda: zarrfs.open_array(codec, mode="r+").__setitem__(0, 1))
incomplete = document("incomplete", codecs=[bytes_codec, {"name": "example.xor", "configuration": {}}])
attempt(lambda: zarrfs.open_array(incomplete))
grid = document("grid", chunk_grid={"name": "example.raising", "configuration": {}})
attempt(lambda: zarrfs.open_array(grid)[...])
keys = document("keys", chunk_key_encoding={"name": "example.raising"})
attempt(lambda: zarrfs.open_array(keys)[...])
dtype = document("dtype", data_type={"name": "example.raising"}, fill_value="x")
attempt(lambda: zarrfs.open_array(dtype))
attempt(lambda: zarrfs.open("raising://never"))
attempt(lambda: zarrfs.open(f"raising://{where}"))
assert zarrfs.open_array(document("fine"))[...].tolist() == [0, 1, 2, 3]
print(json.dumps(messages))
"""


def test_a_package_whose_code_raises_is_named_and_affects_only_what_uses_it(
    site: Path, tmp_path: Path
) -> None:
    import json

    messages = json.loads(run(site, RAISING, tmp_path / "store"))
    parts = [
        ["ChunkDecodeError", "'example.raising' of example-extensions", "ZeroDivisionError: cannot decode"],
        ["ChunkDecodeError", "ZeroDivisionError: cannot decode"],
        ["MetadataError", "'example.xor' of example-extensions", "KeyError: 'mask'"],
        ["MetadataError", "'example.raising' of example-extensions", "ZeroDivisionError: no size"],
        ["MetadataError", "'example.raising' of example-extensions", "ZeroDivisionError: no key"],
        ["MetadataError", "'example.raising' of example-extensions", "ZeroDivisionError: no fill value"],
        ["LocationError", "raising://never", "KeyError: 'cannot be opened'"],
        ["StoreError", "store plugin 'raising' raised ZeroDivisionError"],
    ]
    assert len(messages) == len(parts)
    for message, expected in zip(messages, parts, strict=True):
        for part in expected:
            assert part in message
