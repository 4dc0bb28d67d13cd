"""The output of commands: tables for users, JSON and YAML for programs.

Bold heads and folded texts only on a terminal; piped output is plain, one line a row, so that grep and diff work on it.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from autoscaler.catalog_refresh.atomic_write import ensure_writable, replace_file
from autoscaler.cli.common.commands import Command
from autoscaler.cli.common.terminal import styled
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.printable import one_line, printable_json, printable_yaml, steers
from instance_catalog.frozen_map import EMPTY

FORMATS = ("table", "json", "yaml")
_MARKUP = re.compile(r"[\\`*_\[\]<>|&~#]")
_TICKS = re.compile("`+")
_COMMAND = re.compile("`[^`]*`")
# Text for PyYAML; booleans of YAML 1.1, or numbers of YAML 1.2 or of Kubernetes' reader, which leaves out underscores.
_OTHER_TYPES = re.compile(
    r"[yYnN]|[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|"
    r"(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9][0-9_]*)?)"
)
_KEPT = "\x1f"  # in place of blanks at which no line ends; one_line leaves none in a text
_JSON_WIDTH = 110
_LEAST_ROOM = 32  # columns for texts, however narrow the terminal is


def output_option(*extra: str) -> Callable[[Command], Command]:
    """The -o option that every listing command takes; `extra` adds formats such as "wide"."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*FORMATS, *extra]),
        default="table",
        show_default=True,
        help="Output form.",
    )


def print_data(data: object, form: str) -> None:
    """Print plain data (dicts, lists, scalars) as "json" or "yaml"."""
    if form == "json":
        click.echo(printable_json(json_text(data)))
        return
    click.echo(yaml_text(data), nl=False)


def json_text(data: object, *, room: int = _JSON_WIDTH, indent: str = "") -> str:
    """Plain data as JSON, in lines of about `room` characters: what fits on one line is not spread over many."""
    flat = json.dumps(data, ensure_ascii=False)
    if len(flat) <= room or not isinstance(data, dict | list | tuple):
        return flat
    deeper = indent + "  "
    if isinstance(data, dict):
        parts = [
            f"{json.dumps(str(key), ensure_ascii=False)}: {json_text(value, room=room - 2, indent=deeper)}"
            for key, value in data.items()
        ]
        opening, closing = "{}"
    else:
        parts = [json_text(value, room=room - 2, indent=deeper) for value in data]
        opening, closing = "[]"
        if all(isinstance(value, str | int | float | None) for value in data):
            return f"[\n{_filled(parts, deeper)}\n{indent}]"
    body = f",\n{deeper}".join(parts)
    return f"{opening}\n{deeper}{body}\n{indent}{closing}"


def _filled(parts: Sequence[str], indent: str) -> str:
    """Many short values: as many on a line as there is room for."""
    lines, line = [], ""
    for index, part in enumerate(parts):
        text = part + ("," if index < len(parts) - 1 else "")
        if line and len(indent) + len(line) + 1 + len(text) > _JSON_WIDTH:
            lines.append(indent + line)
            line = text
        else:
            line = f"{line} {text}" if line else text
    return "\n".join([*lines, indent + line])


def yaml_text(data: object) -> str:
    """Plain data as YAML, in the order it has."""
    import yaml

    base = yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper

    class Dumper(base):  # type: ignore[misc, valid-type]
        """Strings that would steer a terminal get the quotes in which YAML has escapes, and those that some reader
        takes for another type get quotes."""

        def represent_str(self, text: str) -> Any:
            quotes = '"' if steers(text) else "'" if _OTHER_TYPES.fullmatch(text) else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=quotes)

    Dumper.add_representer(str, Dumper.represent_str)
    return printable_yaml(str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", most: int | None = None
) -> None:
    """Print rows under column heads; on a terminal bold heads, and as wide as the terminal is.

    `most`: no wider than so many columns, on a terminal or not.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else most
    if most is not None and width is not None:
        width = min(width, most)
    if title:
        styled(title, bold=True)
    head, *lines = plain_table(columns, rows, width=width, least=_LEAST_ROOM if most is None else _LEAST_ROOM // 2)
    styled(head, bold=True)
    for line in lines:
        click.echo(line)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table of GitHub's Markdown."""
    escaped = [[markdown_text(cell) for cell in row] for row in rows]
    return [_markdown_row(columns), _markdown_row(["---"] * len(columns)), *map(_markdown_row, escaped)]


def markdown_text(text: str) -> str:
    """The text on one line, with nothing in it that Markdown reads as markup, mentions or HTML."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text)).replace("@", "@\u200b")


def fenced(lines: Iterable[str]) -> list[str]:
    """The lines as a block of code that none of them can end."""
    shown = [one_line(line) for line in lines]
    longest = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *shown, fence]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def folded(text: str, width: int) -> list[str]:
    """The text in lines of at most so many characters; further ones are indented. Names and commands are never broken:
    the part of a command that is on a line of its own would be another command."""
    start = len(text) - len(text.lstrip())
    return _wrapped(one_line(text), width, " " * (start + 4))


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT), text)
    lines = textwrap.wrap(whole, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_KEPT, " ") for line in lines] or [""]


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None, least: int = _LEAST_ROOM
) -> list[str]:
    """Lines of an aligned table with two blanks between columns, as kubectl prints.

    With a `width` the texts of the last column continue on the lines below. Names are never broken, so that they can be
    copied: if the other columns leave no room, lines are longer than `width`.
    """
    cells = [[column.upper() for column in columns], *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*cells, strict=True)][:-1]
    room = None if width is None else max(width - sum(widths), least)
    lines = []
    for *first, last in cells:
        start = "".join(cell.ljust(w) for cell, w in zip(first, widths, strict=True))
        for part in [last] if room is None else _wrapped(last, room):
            lines.append((start + part).rstrip())
            start = " " * len(start)
    return lines


def write_page(
    file: Path,
    snapshot: Snapshot,
    plan: Plan,
    now: datetime,
    *,
    title: str,
    helping: Mapping[str, Sequence[str]] = EMPTY,
) -> None:
    """Writes the status page of a plan; `helping` are lines of changes by pod. Raises BadInputError if it cannot."""
    from autoscaler.serve.html import one_file

    ensure_writable(file)
    replace_file(file, one_file(snapshot, plan, now, title=title, helping=helping))
    click.echo(f"{file} is written; open it in a browser", err=True)
