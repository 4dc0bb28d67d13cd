"""Escapes characters in text for a terminal that control it, or that make text look like other text.

Names, CEL texts, annotations and messages of providers may come from people who must not control this terminal, and
from files. Escape sequences set titles, move the cursor and hide lines; bidirectional controls reorder the visible text
(CVE-2021-42574); characters without width make two names look the same.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

# Unicode's categories Cc, Cf, Cs, Zl and Zp, as of version 16; a test compares them with Python's own table. Lone
# surrogates (Cs) cannot even be encoded.
_STEERING: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)


@cache
def _steering(further: str = "") -> re.Pattern[str]:
    """The pattern, compiled for the first text that needs it: this takes milliseconds, too long for `--help`."""
    return re.compile(f"[{_STEERING}{further}]")


def printable(text: str) -> str:
    """The text with such characters as `\\x1b`, `\\u202e`; line breaks and tabs stay."""
    return _steering().sub(_escaped, text) if steers(text) else text


def one_line(text: str) -> str:
    """The same for text of one line, such as a name: line breaks and tabs are escaped, too."""
    return text if text.isprintable() else _steering("\t\n").sub(_escaped, text)


def steers(text: str) -> bool:
    """True if `printable` would escape anything."""
    # Python calls none of these characters printable, and checks faster than the pattern.
    return not text.replace("\n", "").replace("\t", "").isprintable() and _steering().search(text) is not None


def printable_json(text: str) -> str:
    """JSON text with such characters as JSON's own escapes; a program reads the same from it."""
    return _steering().sub(_escaped_in_json, text) if steers(text) else text


def printable_yaml(text: str) -> str:
    """YAML text, in which strings with such characters are in double quotes, with YAML's own escapes."""
    return _steering().sub(_escaped_in_yaml, text) if steers(text) else text


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _escaped_in_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))


def _escaped_in_yaml(found: re.Match[str]) -> str:
    return f"\\U{ord(found[0]):08x}"
