"""How commands print: tables for people, JSON and YAML for programs.

Colour and box drawing only on a terminal; piped output is plain and aligned, so that grep and diff work on it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ("table", "json", "yaml")


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
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    click.echo(yaml_text(data), nl=False)


def yaml_text(data: object) -> str:
    """Plain data as YAML, in the order it has."""
    import yaml

    dumper = yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print rows under column heads. On a terminal with rich, otherwise plain and aligned."""
    if sys.stdout.isatty():
        _print_rich(columns, rows, title)
        return
    if title:
        click.echo(title)
    for line in plain_table(columns, rows):
        click.echo(line)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of an aligned table with two blanks between columns, as kubectl prints."""
    heads = [column.upper() for column in columns]
    widths = [max([len(head), *(len(row[i]) for row in rows)]) for i, head in enumerate(heads)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]]


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.upper(), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
