"""Compiles the fake libnvidia-ml and runs a probe against it, in a process of its own, through the real pynvml."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
SCENARIOS = _HERE / "scenarios"


def compile_library(directory: Path, *flags: str) -> Path:
    """The directory with libnvidia-ml.so.1 in it; -DOLD_DRIVER leaves newer drivers' functions out."""
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / "libnvidia-ml.so.1"
    options = ["-std=c11", "-shared", "-fPIC", "-Wall", "-Wextra", *flags]
    subprocess.run(["cc", *options, "-o", str(library), str(_HERE / "nvml.c")], check=True)
    return directory


@dataclass(frozen=True)
class Outcome:
    """What the command printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


def run_probe(library: Path | None, scenario: str, host_root: Path, *, pynvml: bool = True) -> Outcome:
    """`foreslice probe` on a machine with this library, or none; `pynvml` False: without nvidia-ml-py."""
    environment = {**os.environ, "FAKE_NVML_SCENARIO": str(SCENARIOS / f"{scenario}.txt")}
    environment["LD_LIBRARY_PATH"] = str(library or host_root)
    hidden = "" if pynvml else "sys.modules['pynvml'] = None; "
    code = f"import sys; {hidden}from autoscaler.cli.main import main; main()"
    command = [sys.executable, "-c", code, "probe", "--host-root", str(host_root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
