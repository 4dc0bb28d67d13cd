"""`make mutants`: does a test notice when safety-critical code is wrong?

python -m tests.mutants.run [--draw 12] [--commit HASH] [--id ID] [--processes 2] [--seconds 120]. Each mutant of the
list is put into a copy of the tree, never into the tree itself, and the tests of its room run there until one fails.
Prints what became of each; exits with 1 when one survived, breaks or hangs, or when the list is stale. Without --draw
the tests run once on the unchanged copy first: a test that fails there would kill everything.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.listed import ROOT, Mutant, mutants

KILLED: Final = "killed"
_TESTS_FAILED: Final = 1  # pytest's exit code; others say that the tests could not run


def main(arguments: Sequence[str]) -> int:
    """Run the mutants that were asked for; 1 unless all were killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, help="only so many, drawn by the commit")
    parser.add_argument("--commit", default="", help="what the draw follows from; default: the commit checked out")
    parser.add_argument("--id", action="append", default=[], help="only this one; may be given again")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=120, help="time limit of the tests of one mutant")
    asked = parser.parse_args(arguments)
    chosen = mutants()
    unknown = set(asked.id) - {mutant.id for mutant in chosen}
    if unknown:
        parser.error(f"no mutant has the id {', '.join(sorted(unknown))}")
    if asked.id:
        chosen = tuple(mutant for mutant in chosen if mutant.id in asked.id)
    if asked.draw is not None:
        chosen = draw(chosen, asked.draw, asked.commit or _commit())
    for mutant in chosen:  # a stale list is told before anything runs
        mutant.mutated((ROOT / mutant.file).read_text(encoding="utf-8"))
    with ExitStack() as stack:
        copies: SimpleQueue[Path] = SimpleQueue()
        for _ in range(asked.processes):
            copies.put(stack.enter_context(_copy()))
        pool = stack.enter_context(ThreadPoolExecutor(asked.processes))
        if asked.draw is None:
            rooms = sorted({path for mutant in chosen for path in mutant.tests})
            copy = copies.get()
            sound = _tested(copy, rooms, 60 * asked.seconds) == 0
            copies.put(copy)
            if not sound:
                sys.stdout.write("the tests fail without any mutant: correct that first\n")
                return 1
        found = list(pool.map(lambda mutant: _tell(mutant, copies, asked.seconds), chosen))
    alive = [mutant for mutant, outcome in zip(chosen, found, strict=True) if outcome != KILLED]
    sys.stdout.write(f"{len(chosen) - len(alive)} of {len(chosen)} mutants were killed\n")
    for mutant in alive:
        sys.stdout.write(f"  {mutant.id} in {mutant.file}: {mutant.does}\n    make mutants ID={mutant.id}\n")
    return 1 if alive else 0


def draw(listed: Sequence[Mutant], count: int, commit: str) -> tuple[Mutant, ...]:
    """So many of the mutants, which follow from the commit alone."""
    ordered = sorted(listed, key=lambda mutant: hashlib.sha256(f"{commit} {mutant.id}".encode()).hexdigest())
    return tuple(ordered[:count])


def outcome_of(mutant: Mutant, code: int | None) -> str:
    """What pytest's exit code says of a mutant; None: the tests did not end in time."""
    if code is None:
        return KILLED if mutant.hangs else "HANGS"
    if code == _TESTS_FAILED:
        return KILLED
    return "SURVIVED" if code == 0 else "BROKEN"


def _tell(mutant: Mutant, copies: SimpleQueue[Path], seconds: float) -> str:
    began = time.perf_counter()
    copy = copies.get()
    file = copy / mutant.file
    before = file.read_text(encoding="utf-8")
    try:
        _write(file, mutant.mutated(before))
        code = _tested(copy, mutant.tests, seconds)
    finally:
        _write(file, before)
        copies.put(copy)
    outcome = outcome_of(mutant, code)
    sys.stdout.write(f"{time.perf_counter() - began:>6.1f} s  {outcome:<9} {mutant.id}\n")
    sys.stdout.flush()
    return outcome


def _tested(copy: Path, paths: Sequence[str], seconds: float) -> int | None:
    """pytest's exit code on the copy; None when it did not end in time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", *paths]
    # The copy keeps its byte code, whatever the tree does: each run but the first begins a second earlier.
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": ""}
    try:
        return subprocess.run(
            command, cwd=copy, env=environment, timeout=seconds, check=False, stdout=subprocess.DEVNULL
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def _write(file: Path, text: str) -> None:
    """Change a file so that no byte code of the text before is taken for it: its time stamp counts whole seconds."""
    file.write_text(text, encoding="utf-8")
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()


@contextmanager
def _copy() -> Iterator[Path]:
    """A copy of what git has or would have, elsewhere."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    with tempfile.TemporaryDirectory(prefix="foreslice-mutants-") as folder:
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                target = Path(folder) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        yield Path(folder)


def _commit() -> str:
    asked = ["git", "rev-parse", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
