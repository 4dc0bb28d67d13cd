"""How the command ends: exit codes, Ctrl-C, pipes that close, names that do not exist."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import click
import pytest

from autoscaler.cli import main as entry
from autoscaler.cli.common.terminal import guard_streams, styled
from autoscaler.errors import BadInputError


def run(monkeypatch: pytest.MonkeyPatch, ending: BaseException | None, *arguments: str, says: str = "") -> int:
    """The exit code of a command `act` that says something and ends in this way."""

    @click.command()
    def act() -> None:
        styled("done", bold=True)
        if says:
            click.echo(says)
        if ending is not None:
            raise ending

    monkeypatch.setitem(entry.COMMANDS, "act", ("the.module:act", "For tests."))
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


@pytest.mark.parametrize("option", [(), ("--no-color",)], ids=["a pipe", "--no-color"])
@pytest.mark.parametrize("ending", [None, BadInputError("\x1b[31mred")], ids=["text", "error"])
def test_nothing_vanishes_in_a_pipe(
    option: tuple[str, ...],
    ending: BaseException | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """click would take such sequences out of the text, which would then read as another one."""
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    guard_streams()
    run(monkeypatch, ending, *option, "act", says="\x1b[31mred")
    printed = capsys.readouterr()
    assert printed.out == "done\n\\x1b[31mred\n"
    assert printed.err == ("error: \\x1b[31mred\n" if ending else "")


def test_other_failures_of_the_system_are_not_taken_for_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PermissionError):
        run(monkeypatch, PermissionError(errno.EACCES, "no"))


def test_without_a_stdout_commands_still_do_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # What Python makes of `>&-`.
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    guard_streams()
    assert run(monkeypatch, None, "act", says="text") == 0
    assert entry._flushed(0) == 0


def test_the_version_is_told_as_people_ask_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, None, "--version") == 0
    assert capsys.readouterr().out.startswith("foreslice ")


# Slow to import; a command that only describes the program needs none of them.
HEAVY = ("boto3", "botocore", "lark", "highspy", "numpy", "celpy", "pydantic", "yaml", "h11")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("completion", "bash"),
        ("catalog", "--help"),
        ("blocks", "--help"),
        ("aws", "--help"),
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    # importlib.metadata, which finds the version, imports pathlib itself.
    slow = HEAVY if arguments == ("--version",) else (*HEAVY, "pathlib")
    script = (
        "import sys; from autoscaler.cli.main import foreslice\n"
        f"foreslice.main({list(arguments)!r}, standalone_mode=False)\n"
        f"found = sorted(set({slow!r}) & set(sys.modules)); print(found, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def every_command(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, by its path."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        below = click.Context(command, info_name=name, parent=context)
        yield below.command_path, command
        if isinstance(command, click.Group):
            yield from every_command(command, below)


def test_the_help_of_a_command_begins_as_its_group_lists_it() -> None:
    found = dict(every_command(entry.foreslice, click.Context(entry.foreslice, info_name="foreslice")))
    assert {"foreslice plan", "foreslice catalog sync aws", "foreslice blocks buy"} <= found.keys()
    for path, command in found.items():
        first, _, rest = (command.help or "").partition("\n")
        assert first.endswith("."), path
        assert first not in rest, path
