"""A statement that something is wrong: with a field of an object, a file, or both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.dataclass import field as declared

Path: TypeAlias = tuple[str | int, ...]
_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def unbroken(text: str) -> str:
    """The text on one line: line breaks and other control characters as escapes."""
    return _BREAKS.sub(lambda found: repr(found[0])[1:-1], text)


def all_of(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


class Severity(Enum):
    """An ERROR stops the plan. An UNKNOWN_FIELD is a warning that `--strict` turns into an error."""

    ERROR = "error"
    UNKNOWN_FIELD = "unknown field"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One defect. The code that finds it fills in the known fields; code that knows the location adds it with
    `replace`.

    `path` is the field inside the subject, () for the subject itself. `subject` is "Pod default/main" or "instance type
    p5.48xlarge". `file` is as the user gave it ("-" is standard input, "" the live cluster), `line` 1-based, 0 if
    unknown. So many `others` have the same defect. `sources` are all files that contribute to the subject: any of them
    may be the wrong one.
    """

    message: str
    next_step: str = ""
    path: Path = ()
    subject: str = ""
    severity: Severity = Severity.ERROR
    file: str = ""
    line: int = 0
    others: int = 0
    sources: tuple[str, ...] = declared(default=(), compare=False, repr=False)

    @property
    def field(self) -> str:
        """The path in its usual form: spec.devices.requests[0].exactly."""
        return path_text(self.path)

    @property
    def place(self) -> str:
        """file:line, or the file if no line is known."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def statement(self) -> str:
        """p5.yaml:3: instance type p5.48xlarge: vcpu: found 'many'. Without what to do next. On one line, as names and
        values in it may have line breaks."""
        parts = (self.place, self.about, unbroken(self.field), unbroken(self.message))
        return ": ".join(part for part in parts if part)

    @property
    def about(self) -> str:
        """The subject on one line, and how many others have the same."""
        subject = unbroken(self.subject)
        return f"{subject} and {self.others} more" if self.others else subject

    def __str__(self) -> str:
        """On one line: the statement; what to do next."""
        return f"{self.statement}; {self.next_step}".removesuffix("; ")

    @property
    def block(self) -> str:
        """As a message to a terminal: the statement, and what to do next indented below it."""
        return "\n  ".join((self.statement, *self.next_step.splitlines()))


def path_text(path: Path) -> str:
    """spec.devices.requests[0].exactly; keys with dots are quoted in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part or "/" in part or not part:
            text += f"[{part!r}]"
        else:
            text += f".{part}" if text else part
    return text
