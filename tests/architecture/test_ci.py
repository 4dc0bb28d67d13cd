"""`.ci/run` with suites that write a line each: which of them runs beside others, and what becomes of a failure."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# Each suite says its name and does what a variable of its name says. `end` is a FIFO: e2e ends when it is written to.
MAKEFILE = """
setup lint test slow mutants demo installed faults oracle e2e:
\t@echo "$@ runs"; $($@)
"""
PATIENCE = 60.0  # seconds; a test takes one on an idle machine
WAITS = "read line < end; echo e2e ends"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A tree with `.ci` and stubs of all that it calls."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci", ignore=shutil.ignore_patterns("requirements.txt", "__pycache__"))
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    os.mkfifo(tmp_path / "end")
    for program in (".venv/bin/python", "bin/chromium"):
        (tmp_path / program).parent.mkdir(parents=True)
        (tmp_path / program).write_text('#!/bin/sh\necho "python $*"\n', encoding="utf-8")
        (tmp_path / program).chmod(0o755)
    return tmp_path


@contextmanager
def started(clone: Path, **suites: str) -> Iterator[subprocess.Popen[str]]:
    """CI in a process group of its own, as of a terminal, and with make's variables for the suites. What a test that
    fails leaves of it ends with it."""
    environment = {**os.environ, "PATH": f"{clone / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(clone), **suites}
    running = subprocess.Popen(
        [clone / ".ci/run"],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # pytest's workers ignore it, and leave it so
    )
    watch = threading.Timer(PATIENCE, end_session, [running.pid])
    watch.start()
    try:
        yield running
    finally:
        watch.cancel()
        end_session(running.pid)
        running.wait()
        assert running.stdout is not None
        running.stdout.close()


def end_session(session: int) -> None:
    """Kill all processes of a session."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # one that ended meanwhile
            # proc(5): the name in parentheses may contain spaces; the session is the fourth field after it.
            if int(status.read_text(encoding="utf-8").rpartition(")")[2].split()[3]) == session:
                os.kill(int(status.parent.name), signal.SIGKILL)


def until(running: subprocess.Popen[str], text: str) -> Iterator[str]:
    """What CI writes, up to the line with the text."""
    assert running.stdout is not None
    for line in running.stdout:
        yield line
        if text in line:
            return
    raise AssertionError(f"CI ended without {text!r}")


def end(clone: Path) -> None:
    """Let e2e go on to its end."""
    (clone / "end").write_text("\n", encoding="ascii")


def test_other_suites_run_while_e2e_does_and_its_output_follows_in_one_piece(clone: Path) -> None:
    with started(clone, e2e=WAITS) as running:
        begin = list(until(running, "faults runs"))
        end(clone)
        rest, _ = running.communicate()
    assert running.returncode == 0
    assert not [line for line in begin if "e2e" in line]
    assert "exit status 0" in rest
    assert "e2e runs\ne2e ends\n" in rest
    assert rest.index("e2e ends") < rest.index("oracle runs") < rest.index("summary.py")


def test_a_failure_of_e2e_is_shown_and_fails_ci(clone: Path) -> None:
    with started(clone, e2e="echo a broken test; exit 3") as running:
        told, _ = running.communicate()
    assert running.returncode != 0
    assert told.index("faults runs") < told.index("a broken test")
    assert "oracle runs" not in told


def test_a_failure_beside_e2e_waits_for_it_and_shows_both(clone: Path) -> None:
    with started(clone, e2e=f"{WAITS}; exit 3", slow="echo a broken test; exit 3") as running:
        begin = "".join(until(running, "waiting for the end-to-end suite"))
        end(clone)
        rest, _ = running.communicate()
    assert running.returncode != 0
    assert "a broken test" in begin
    assert "e2e ends" in rest
    assert "runs" not in rest.replace("e2e runs", "")


def test_a_failure_before_e2e_ends_at_once(clone: Path) -> None:
    with started(clone, test="exit 3", e2e=WAITS) as running:
        told, _ = running.communicate()
    assert running.returncode != 0
    assert "e2e runs" not in told
    assert "end to end" not in told


@pytest.mark.parametrize("slow", ["echo busy; exec cat end", "exit 3"], ids=["in front", "waiting"])
def test_ctrl_c_ends_both(clone: Path, slow: str) -> None:
    # The shell becomes `cat`: dash keeps a SIGINT that comes while it starts a child for later.
    os.mkfifo(clone / "up")
    with started(clone, e2e="echo up > up; exec cat end", slow=slow) as running:
        list(until(running, "busy" if "busy" in slow else "waiting for"))
        assert (clone / "up").read_text(encoding="ascii") == "up\n"
        os.killpg(running.pid, signal.SIGINT)
        running.communicate()
    assert running.returncode == 130
    assert not list(clone.glob("tmp.*"))
