"""The shipped catalog and the facts beside it as an earlier command read them, in files of the user's cache directory.

Reading, checking and merging the shipped files, with the libraries that do so, is a quarter of what a short command
costs. A file counts only for exactly the same data, code and version of Python, so it is never out of date; whatever
is wrong with it or with the directory, the data is read as if there were none.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeVar

import instance_catalog
from autoscaler.catalog_refresh.cache_directory import cache_directory
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import Folders
from instance_catalog.types.catalog import Catalog

T = TypeVar("T")

_ROOT: Final = Path(instance_catalog.__file__).parent
_KEY_BYTES: Final = 32
# What they are made of. Anything else in the file is refused before it is created.
_OTHERS: Final = frozenset({("datetime", "date"), ("decimal", "Decimal"), ("fractions", "Fraction")})


def shipped_catalog(read: Callable[[], Catalog]) -> Catalog:
    """The shipped catalog: from the cache if it is there, else from `read`, whose answer is then kept."""
    return _kept("shipped-catalog", Catalog, read)


def shipped_facts(read: Callable[[], Folders]) -> Folders:
    """The same for the facts of drivers, clouds, node images and MIG."""
    return _kept("shipped-facts", FrozenMap, read)


def _kept(name: str, kind: type, read: Callable[[], T]) -> T:
    directory = cache_directory()
    key = _key(_ROOT) if directory is not None else None
    if directory is None or key is None:
        return read()
    path = directory / name
    found: T | None = _loaded(path, key, kind)
    if found is None:
        found = read()
        _keep(path, key + pickle.dumps(found, protocol=5))
    return found


@cache  # the data and code of a process do not change
def _key(root: Path) -> bytes | None:
    """Of the data, of the code that reads it, and of Python; None if the code is not there as text."""
    found, code = hashlib.blake2b(sys.version.encode(), digest_size=_KEY_BYTES), False
    try:
        for path in _files(root):
            code = code or path.endswith(".py")
            with open(path, "rb") as file:
                content = file.read()
            found.update(b"%s\0%d\0" % (path.removeprefix(str(root)).encode(), len(content)))
            found.update(content)
    except OSError:
        return None
    return found.digest() if code else None


def _files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".py", ".yaml")):
                yield os.path.join(folder, name)


def _loaded(path: Path, key: bytes, kind: type) -> Any:
    """None if there is no such file, if it is somebody else's, or if it is of other data."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            content = file.read()
        if content[:_KEY_BYTES] != key:
            return None
        found = _Reader(BytesIO(content[_KEY_BYTES:])).load()
    except Exception:  # noqa: BLE001  # a damaged pickle raises anything; the data is read instead
        return None
    return found if isinstance(found, kind) else None


class _Reader(pickle.Unpickler):
    """Creates values of the catalog and its facts, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if not module.startswith("instance_catalog.") and (module, name) not in _OTHERS:
            raise pickle.UnpicklingError(f"{module}.{name} is not a part of a catalog")
        found = super().find_class(module, name)
        # What a module has imported, and its functions, are none either.
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is not a class of a catalog")
        return found


def _keep(path: Path, content: bytes) -> None:
    """Write the file so that no reader sees a part of it; without complaint if it cannot be written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError:
        return
