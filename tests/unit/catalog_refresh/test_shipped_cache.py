"""The kept shipped catalog: it is the same catalog, it is never stale, and nothing that goes wrong with it matters."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoscaler.catalog_refresh import shipped_cache
from autoscaler.catalog_refresh.cache_directory import cache_directory
from autoscaler.catalog_refresh.shipped_cache import shipped_catalog, shipped_facts
from instance_catalog import package_data
from instance_catalog.files.loader import load_catalog, shipped_layers
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import Folders
from instance_catalog.types.catalog import Catalog

NAME = "shipped-catalog"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORESLICE_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


class Reading:
    """Reads the catalog and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Catalog:
        self.times += 1
        return load_catalog()


def test_the_second_command_reads_no_file_of_the_catalog(directory: Path) -> None:
    read = Reading()
    first, second = shipped_catalog(read), shipped_catalog(read)
    assert read.times == 1
    assert second is not first
    assert second == first
    assert second.digest == first.digest == Catalog.of(second, second.accelerators.values()).digest
    assert [os.fspath(path.name) for path in directory.iterdir()] == [NAME]


def test_what_another_process_kept_is_found_by_hash(directory: Path) -> None:
    """Texts hash differently there, and a map keeps its hash."""
    program = (
        "from autoscaler.catalog_refresh.shipped_cache import shipped_catalog\n"
        "from instance_catalog.files.loader import load_catalog\n"
        "found = load_catalog(); assert {hash(t) for t in found}\n"
        "shipped_catalog(lambda: found)\n"
    )
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": "7"}, check=True, timeout=120)
    read = Reading()
    kept, mine = shipped_catalog(read), load_catalog()
    assert read.times == 0
    assert len(mine) > 100
    assert {t: t.name for t in kept} == {t: t.name for t in mine}


def test_other_data_is_read_again(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "code.py").write_text("")
    data = tmp_path / "data" / "nodes.yaml"
    data.write_text("a: 1")
    monkeypatch.setattr(shipped_cache, "_ROOT", tmp_path)
    read = Reading()
    shipped_catalog(read)
    shipped_catalog(read)
    assert read.times == 1
    data.write_text("a: 2")
    shipped_cache._key.cache_clear()  # as in another process
    shipped_catalog(read)
    assert read.times == 2
    (tmp_path / "code.py").write_text("pass")
    shipped_cache._key.cache_clear()
    shipped_catalog(read)
    assert read.times == 3


FOLDERS = ("clouds", "drivers", "images", "mig")


@pytest.fixture
def kept_facts(directory: Path) -> Iterator[None]:
    package_data.keep_contents(shipped_facts)
    yield
    package_data.keep_contents(None)


def test_the_second_command_reads_no_facts_of_drivers_and_clouds(
    kept_facts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {folder: package_data.contents(folder) for folder in FOLDERS}
    package_data.keep_contents(shipped_facts)  # as in another process
    monkeypatch.setattr(package_data, "_read", None)
    second = {folder: package_data.contents(folder) for folder in FOLDERS}
    assert second == first
    assert repr(second) == repr(first)  # in the same order
    assert second["drivers"] is not first["drivers"]


def test_kept_facts_are_those_of_the_files(kept_facts: None) -> None:
    kept = {folder: package_data.contents(folder) for folder in FOLDERS}
    package_data.keep_contents(None)
    assert {folder: package_data.contents(folder) for folder in FOLDERS} == kept
    folders = {path.name for path in (Path(package_data.__file__).parent / "data").iterdir() if path.is_dir()}
    assert folders - {"aws", "gcp", "schema"} == set(FOLDERS)


def test_a_catalog_is_no_facts(directory: Path) -> None:
    read = Reading()
    shipped_catalog(read)
    (directory / "shipped-facts").write_bytes((directory / NAME).read_bytes())
    facts: Folders = FrozenMap({"mig": FrozenMap({"a": {"b": 1}})})
    assert shipped_facts(lambda: facts) == facts


@pytest.mark.parametrize("harm", ["cut", "foreign", "writable", "empty"])
def test_a_bad_file_is_replaced(directory: Path, harm: str) -> None:
    read = Reading()
    good = shipped_catalog(read)
    path = directory / NAME
    content = path.read_bytes()
    if harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif harm == "foreign":
        path.write_bytes(content[:32] + pickle.dumps(os.system))
    elif harm == "empty":
        path.write_bytes(b"")
    else:
        path.chmod(0o666)
    assert shipped_catalog(read) == good
    assert read.times == 2
    shipped_catalog(read)
    assert read.times == 2
    assert path.stat().st_mode & 0o077 == 0


def call(module: str, name: str, argument: str) -> bytes:
    """The pickle that calls module.name(argument)."""
    texts = (b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + b"".join(texts) + b"\x93" + pickle.dumps((argument,), protocol=0)[:-1] + b"R."


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("instance_catalog.prediction.concrete", "uuid.os.system"),  # by way of what a module of ours imports
        ("instance_catalog.files.loader", "Path.touch"),
    ],
)
def test_a_file_never_runs_code(directory: Path, tmp_path: Path, module: str, name: str) -> None:
    read = Reading()
    shipped_catalog(read)
    path = directory / NAME
    harm = call(module, name, f"touch {tmp_path}/harmed")
    if name.endswith("system"):
        pickle.loads(harm)  # it would
        (tmp_path / "harmed").unlink()
    path.write_bytes(path.read_bytes()[:32] + harm)
    shipped_catalog(read)
    assert read.times == 2
    assert not (tmp_path / "harmed").exists()


def test_a_directory_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FORESLICE_CACHE_DIR", str(tmp_path / "file" / "below"))
    read = Reading()
    assert len(shipped_catalog(read)) > 100
    assert shipped_catalog(read) == load_catalog()
    assert read.times == 2


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESLICE_CACHE_DIR", "")
    assert cache_directory() is None
    monkeypatch.delenv("FORESLICE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert cache_directory() == Path("/var/cache/me/foreslice")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_directory() == Path("/home/me/.cache/foreslice")


def test_no_shipped_file_ends_at_some_time() -> None:
    """A kept catalog does not know the time."""
    layers = shipped_layers()
    assert layers
    assert all(layer.expires is None for layer in layers)
