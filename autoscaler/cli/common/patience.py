"""What a command says on a terminal when its answer takes longer than anybody waits without a sign."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from autoscaler.cli.common.terminal import show_progress

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
