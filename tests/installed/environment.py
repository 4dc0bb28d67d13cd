"""Empty environments with the built wheel: one without extras, and one over it for each extra."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PYPROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: Final = tuple(sorted(name for name in PYPROJECT["project"]["optional-dependencies"] if name != "dev"))
_TIMEOUT: Final = 170  # seconds; downloads included


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment. `home` is the working directory and HOME of what runs in it: nothing is configured."""

    folder: Path
    home: Path

    @staticmethod
    def created(folder: Path, *, over: Environment | None = None) -> Environment:
        """An empty one; `over` another, whose packages it sees as installed."""
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_TIMEOUT)
        home = folder / "home"
        home.mkdir()
        found = Environment(folder, home)
        if over is not None:
            (found.packages / "below.pth").write_text(f"{over.packages}\n", encoding="utf-8")
        return found

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        return next((self.folder / "lib").glob("python3*")) / "site-packages"

    def install(self, *requirements: str) -> None:
        """With the versions of the lock file, as far as it names them."""
        constraints = self.folder / "constraints.txt"
        constraints.write_text(_pinned(), encoding="utf-8")
        command = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", str(constraints), *requirements]
        subprocess.run([str(self.folder / "bin" / "python"), *command], check=True, timeout=_TIMEOUT)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """foreslice with these arguments."""
        code = "import sys; from autoscaler.cli.main import main; sys.argv[0] = 'foreslice'; main()"
        return self.python("-c", code, *arguments)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Its interpreter with these arguments."""
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
        return subprocess.run(
            [str(self.folder / "bin" / "python"), *arguments],
            cwd=self.home,
            env={**kept, "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )

    def megabytes(self) -> float:
        """What its packages take, without the installer."""
        tools = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
        files = (
            file
            for entry in self.packages.iterdir()
            if not entry.name.startswith(tools)
            for file in ([entry] if entry.is_file() else entry.rglob("*"))
        )
        return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def built_wheel(into: Path) -> Path:
    """The wheel of this tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=_TIMEOUT)
    (wheel,) = into.glob("*.whl")
    return wheel


def _pinned() -> str:
    """Name and version of every package of the lock file; pip takes no hashes in constraints."""
    lines = (ROOT / ".ci" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return "".join(f"{line.removesuffix(chr(92)).strip()}\n" for line in lines if line[:1].isalnum() and "==" in line)
