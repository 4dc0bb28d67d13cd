"""Go programs of the tests: built once per content of their module, kept in a cache outside the repository."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GoProgram:
    """A main package of a module. `requires` is the module whose version tells builds apart."""

    name: str
    folder: Path
    requires: str
    takes: str  # how long the first build takes, for the person who waits
    modfile: str = "go.mod"
    link: tuple[str, ...] = ()  # linker flags
    package: str = "."  # of this module, or a tool that it requires
    tags: tuple[str, ...] = ()  # build tags
    toolchain: str = ""  # of Go, where the module needs a newer one than the others: Go downloads it

    @property
    def version(self) -> str:
        """The required version of Kubernetes' module, such as v1.36.3."""
        text = (self.folder / self.modfile).read_text(encoding="utf-8")
        found = re.search(rf"^\s*{re.escape(self.requires)} (v\S+)", text, re.MULTILINE)
        assert found is not None, f"{self.modfile} requires {self.requires}"
        return found[1]

    def binary(self) -> Path:
        """Path of the program, built if need be; processes that ask at once build once."""
        sums = Path(self.modfile).with_suffix(".sum").name
        sources = [*sorted(self.folder.glob("*.go")), self.folder / self.modfile, self.folder / sums]
        content = [*(path.read_bytes() for path in sources), " ".join((*self.link, *self.tags)).encode()]
        digest = hashlib.sha256(b"\0".join(content)).hexdigest()[:16]
        cache = Path(os.environ.get("FORESLICE_CACHE", Path.home() / ".cache" / "foreslice"))
        found = cache / f"{self.name}-{self.version}-{digest}"
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not found.exists():
                self._build(found)
        return found

    def _build(self, target: Path) -> None:
        sys.stderr.write(f"building {self.name} with {self.requires} {self.version}: {self.takes}, once\n")
        partial = target.with_suffix(".partial")
        flags = ["-trimpath", "-mod=readonly", f"-modfile={self.modfile}", "-buildvcs=false"]
        flags += ["-tags", ",".join(self.tags)] if self.tags else []
        link = " ".join(["-s", "-w", *self.link])
        toolchain = {"GOTOOLCHAIN": self.toolchain} if self.toolchain else {}
        subprocess.run(
            ["go", "build", *flags, "-ldflags", link, "-o", str(partial), self.package],
            cwd=self.folder,
            env={**os.environ, **toolchain, "GOWORK": "off", "CGO_ENABLED": "0"},
            check=True,
        )
        partial.rename(target)
