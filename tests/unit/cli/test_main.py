"""How the command ends: exit codes, Ctrl-C, pipes that close, names that do not exist."""

from __future__ import annotations

import errno
import sys
from types import SimpleNamespace

import click
import pytest

from autoscaler.cli import main as entry
from autoscaler.cli.common.terminal import styled
from autoscaler.errors import BadInputError


def run(monkeypatch: pytest.MonkeyPatch, ending: BaseException | None, *arguments: str) -> int:
    """The exit code of a command `act` that ends in this way."""

    @click.command()
    def act() -> None:
        styled("done", bold=True)
        if ending is not None:
            raise ending

    monkeypatch.setitem(entry.COMMANDS, "act", ("the.module", "For tests."))
    monkeypatch.setitem(sys.modules, "the.module", SimpleNamespace(act=act))
    monkeypatch.setattr(sys, "argv", ["foreslice", *(arguments or ("act",))])
    return entry._run()


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (None, 0),
        (SystemExit(3), 3),
        (BadInputError("x"), 1),
        (click.UsageError("x"), 2),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
        (OSError(errno.ENOSPC, "full"), 1),
    ],
    ids=["well", "with an answer that is bad", "bad input", "wrong usage", "Ctrl-C", "| head", "disk full"],
)
def test_exit_codes(ending: BaseException | None, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, ending) == code


def test_errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(monkeypatch, BadInputError("no such file", next_step="check the path"))
    assert capsys.readouterr().err == "error: no such file\n  check the path\n"


@pytest.mark.parametrize(
    ("name", "step"), [("acct", "did you mean 'act'?"), ("zzzzz", "`foreslice --help` lists them")]
)
def test_unknown_commands(
    name: str, step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, None, name) == 2
    assert f"No such command '{name}'; {step}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "variable", "shown"),
    [((), "", "\x1b[1mdone"), (("--no-color",), "", "done"), ((), "1", "done")],
    ids=["a terminal", "--no-color", "NO_COLOR"],
)
def test_color(
    option: tuple[str, ...],
    variable: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    run(monkeypatch, None, *option, "act")
    assert capsys.readouterr().out.startswith(shown)


def test_other_failures_of_the_system_are_not_taken_for_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PermissionError):
        run(monkeypatch, PermissionError(errno.EACCES, "no"))


def test_the_version_is_told_as_people_ask_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, None, "--version") == 0
    assert capsys.readouterr().out.startswith("foreslice ")
