"""Filters all text that commands print before it reaches a terminal.

The streams themselves are replaced, so that nothing bypasses this: tables, errors, notes, click's usage errors and
tracebacks. Only this package's own styles and its progress line are written unchanged.

If the output is a pipe, click removes ANSI sequences before they reach the streams, which would change a text.
`color=True` prevents that (the program's context, echo outside of it); `styled` decides about its styles.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

import click

from autoscaler.report.printable import printable

_PLAIN: Final = f"{__name__}.plain"


def no_styles(ctx: click.Context) -> None:
    """No styles for the rest of the command, on terminals either."""
    ctx.meta[_PLAIN] = True


class Printable:
    """A text stream that writes out what would steer a terminal; `raw` is the stream behind it."""

    # click would reopen the file and bypass this if it read ASCII here.
    encoding = "utf-8"

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def guard_streams() -> None:
    """Make stdout and stderr printable for the rest of the process."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """The same for as long as a command runs."""
    before = sys.stdout, sys.stderr
    guard_streams()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def styled(text: str, *, bold: bool = False, dim: bool = False, colour: str = "") -> None:
    """Prints a line in a style, if the terminal has any; the text itself is made printable.

    https://no-color.org: with NO_COLOR in the environment nothing has a colour.
    """
    fg = None if os.environ.get("NO_COLOR") else colour or None
    out, ctx = behind(sys.stdout), click.get_current_context(silent=True)
    color = out.isatty() and not (ctx is not None and ctx.meta.get(_PLAIN))
    click.secho(printable(text), file=out, color=color, bold=bold or None, dim=dim or None, fg=fg)


def show_progress(text: str) -> None:
    """Replace the current line of the terminal at stderr."""
    click.echo(f"\r\x1b[K{printable(text)}", file=behind(sys.stderr), nl=False)


def behind(stream: TextIO) -> TextIO:
    """The stream itself, for text that is printable already and carries styles."""
    return stream.raw if isinstance(stream, Printable) else stream


def _guarded(stream: TextIO | None) -> TextIO:
    if stream is None:
        # The shell closed it (`>&-`). Its number must be in use: the next file that is opened would get it.
        return cast("TextIO", Printable(open(os.devnull, "w", encoding="utf-8")))
    if isinstance(stream, Printable):
        return stream
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and stream.encoding.lower().replace("-", "") not in ("utf8", "utf16"):
        reconfigure(errors="backslashreplace")
    return cast("TextIO", Printable(stream))


AFTER: Final = 2.0  # seconds


@contextmanager
def announced(text: str, *, after: float = AFTER) -> Iterator[None]:
    """Show the text on stderr, if that is a terminal and the block takes longer than `after` seconds."""
    if not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        show_progress(text)

    timer = threading.Timer(after, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            show_progress("")
