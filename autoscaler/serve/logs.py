"""The log: one event name a line with its facts as fields, JSON for machines and a console for users.

Messages of libraries through the standard library's logging have the same form. Texts that look like credentials are
replaced before a line is written: more people read a log than may have a token. Texts of objects and servers cannot
fill the log: a long text is cut, and a traceback that repeats has one line.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog

from autoscaler.report.printable import one_line, printable
from autoscaler.settings.settings import LogFormat, LogLevel, LogSettings

REDACTED: Final = "[redacted]"
# Of a text in a line. Container runtimes split lines of 16 KiB, and their readers do not always join them again.
_LONGEST: Final = 8_000
# A traceback is written whole once within so many seconds, as long as no more than so many differ.
_SAID_SECONDS: Final = 3600.0
_MOST_SAID: Final = 1_000
_MANY_LINES: Final = frozenset({"exception", "stack"})
_TALKATIVE: Final = ("apscheduler", "uvicorn", "urllib3", "botocore")
_SECRET_NAMES: Final = re.compile(
    r"(^|[_.-])(token|password|passwd|secret|authorization|credentials?|api[_-]?key|private[_-]?key|cookie)s?($|[_.-])",
    re.IGNORECASE,
)
_SECRET_TEXTS: Final = re.compile(
    r"(?i:\bauthorization:\s*\w+\s+)\S+|(?i:\bbearer\s+)[\w~+/.=-]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"  # a JSON Web Token, such as a service account's
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # an AWS access key
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # user:password of a URL
)


def redacted(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: values of fields named like secrets, and texts that look like one, are replaced."""
    return {name: _clean(name, value) for name, value in event.items()}


def _clean(name: str, value: Any) -> Any:
    if _SECRET_NAMES.search(name):
        return REDACTED
    if isinstance(value, str):
        return _cut(_SECRET_TEXTS.sub(REDACTED, value))
    if isinstance(value, Mapping):
        return {str(key): _clean(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", inner) for inner in value]
    return value


def _cut(text: str) -> str:
    """The beginning and the end, which in a traceback has the error."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


class SaidOnce:
    """A structlog processor: a traceback through the same lines as one within the last hour has its last line only.

    One bug may be met by thousands of objects in each reconcile. Called under the lock of the log's handler.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._said: OrderedDict[int, float] = OrderedDict()

    def __call__(self, _: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        text = event.get("exception")
        if not isinstance(text, str):
            return event
        passed, now = hash(tuple(line for line in text.splitlines() if line.startswith("  File "))), self._monotonic()
        if now - self._said.get(passed, -_SAID_SECONDS) < _SAID_SECONDS:
            return {**event, "exception": f"{text.splitlines()[-1]} (traceback as logged before, within the last hour)"}
        self._said[passed] = now
        self._said.move_to_end(passed)
        if len(self._said) > _MOST_SAID:
            self._said.popitem(last=False)
        return event


def printable_fields(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor for a console: nothing in a field steers the terminal, or begins a line of its own."""
    return {
        one_line(name): printable(value) if name in _MANY_LINES and isinstance(value, str) else _on_one_line(value)
        for name, value in event.items()
    }


def _on_one_line(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {one_line(str(key)): _on_one_line(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_on_one_line(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float) else one_line(str(value))


def _as_json() -> list[Any]:
    return [structlog.processors.JSONRenderer(default=str)]


def _for_console(*, colors: bool) -> list[Any]:
    plain = structlog.dev.plain_traceback
    return [printable_fields, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]


def log_to_stderr(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Send every log of the process there, in the form that the settings ask for. Called once, by the command."""
    stream = stream or sys.stderr
    as_json = settings.format is LogFormat.JSON or (settings.format is LogFormat.AUTO and not stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                SaidOnce(),
                redacted,
                *(_as_json() if as_json else _for_console(colors=stream.isatty())),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.value.upper())
    for library in _TALKATIVE:
        # Foreslice logs what matters of them itself: a line for every periodic task is noise.
        logging.getLogger(library).setLevel(logging.DEBUG if settings.level is LogLevel.DEBUG else logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
