"""Regular expressions by Go's rules, rewritten for RE2 (regexp/syntax/parse.go of Go 1.26.8, flags Perl).

RE2 in C++ differs in details: names of groups and classes, nesting, tables of Unicode. So a pattern is read here by
Go's rules, its limits included, and written in a form that both read alike: flags, classes and letters of either case
are resolved. Groups are only written if they are needed, because no result shows them.
"""

from __future__ import annotations

import re
from typing import Final

from autoscaler.cel.library.pattern_classes import MAX_RUNE, PERL, POSIX, Ranges, folded, negated, unicode_class, union
from autoscaler.cel.library.pattern_tree import MAX_SIZE, PSEUDO, Flags, Node, NodeStack, Op, grouped, refusal

_MAX_REPEAT: Final = 1000
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}", re.ASCII)
_OPERATORS: Final = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}
_NAME: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_ESCAPED: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_OCTAL: Final = re.compile(r"[1-7][0-7]{1,2}|0[0-7]{0,2}", re.ASCII)
_HEX: Final = re.compile(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})", re.ASCII)


def rewritten(pattern: str) -> str:
    """The pattern for RE2. Raises PatternError and TooLargeError."""
    return _Parser(pattern).parse()


class _Parser(NodeStack):
    """One pattern."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self._flags = Flags()

    def parse(self) -> str:
        """The pattern for RE2."""
        at, last_repeat = 0, -1
        while at < len(self.pattern):
            after = self._repetition(at, last_repeat)
            last_repeat = -1 if after is None else at
            at = self._element(at) if after is None else after
        self.concat()
        if self.swap_bar():
            self.stack.pop()
        self.alternate()
        if len(self.stack) != 1:
            raise refusal("missing closing )", self.pattern)
        return self.stack[0].text

    def _element(self, at: int) -> int:
        """Read anything but a repetition; return where it ends."""
        match self.pattern[at]:
            case "(":
                return self._open(at)
            case "[":
                return self._bracket(at)
            case "\\":
                return self._escape(at)
            case "|":
                self.concat()
                if not self.swap_bar():
                    self.push(self.new(Op.BAR))
            case ")":
                self._close()
            case "^":
                self.push(self.new(Op.EMPTY, r"\A" if self._flags.one_line else "(?m:^)"))
            case "$":
                self.push(self.new(Op.EMPTY, r"\z" if self._flags.one_line else "(?m:$)"))
            case ".":
                self.push(self.new(Op.CLASS, "(?s:.)" if self._flags.dot_newline else r"[^\n]"))
            case character:
                self.literal(ord(character), fold=self._flags.fold)
        return at + 1

    def _repetition(self, at: int, last: int) -> int | None:
        """Read a repetition; return its end, or None if there is none. `last`: the start of one that ended here, or
        -1."""
        character = self.pattern[at]
        if character in _OPERATORS:
            low, high = _OPERATORS[character]
            return self._repeat(at, at + 1, last, low=low, high=high, operator=character)
        found = _REPEAT.match(self.pattern, at)
        if found is None:
            return None
        low = int(found[1][:9])
        high = low if not found[2] else int(found[3][:9]) if found[3] else -1
        if low > _MAX_REPEAT or high > _MAX_REPEAT or 0 <= high < low:
            raise refusal("invalid repeat count", found[0])
        return self._repeat(at, found.end(), last, low=low, high=high, operator="")

    # Groups and repetitions.

    def _open(self, at: int) -> int:
        s = self.pattern
        if not s.startswith("(?", at):
            self._left(captures=True)
            return at + 1
        named = next((len(mark) for mark in ("(?P<", "(?<") if s.startswith(mark, at)), 0)
        if named and len(s) - at > named:
            end = s.find(">", at)
            if end < 0:
                raise refusal("invalid named capture", s[at:])
            if not _NAME.fullmatch(s, at + named, end):
                raise refusal("invalid named capture", s[at : end + 1])
            self._left(captures=True)
            return end + 1
        return self._perl_flags(at)

    def _left(self, *, captures: bool) -> None:
        node = self.new(Op.LEFT)
        node.flags, node.captures = self._flags, captures
        self.push(node)

    def _perl_flags(self, start: int) -> int:
        """(?flags) and (?flags:, like parsePerlFlags."""
        s, at, on, seen = self.pattern, start + 2, True, False
        fold, one_line = self._flags.fold, self._flags.one_line
        dot_newline, lazy = self._flags.dot_newline, self._flags.lazy
        while at < len(s):
            character, at = s[at], at + 1
            match character:
                case "i":
                    fold, seen = on, True
                case "m":
                    one_line, seen = not on, True
                case "s":
                    dot_newline, seen = on, True
                case "U":
                    lazy, seen = on, True
                case "-" if on:
                    on, seen = False, False
                case ":" | ")" if on or seen:
                    if character == ":":
                        self._left(captures=False)
                    self._flags = Flags(fold, one_line, dot_newline, lazy)
                    return at
                case _:
                    break
        raise refusal("invalid or unsupported Perl syntax", s[start:at])

    def _close(self) -> None:
        self.concat()
        if self.swap_bar():
            self.stack.pop()
        self.alternate()
        if len(self.stack) < 2 or self.stack[-2].op is not Op.LEFT:
            raise refusal("unexpected )", self.pattern)
        inner, left = self.stack.pop(), self.stack.pop()
        assert left.flags is not None
        self._flags = left.flags
        if left.captures:
            text = grouped(inner) if inner.op is Op.ALTERNATE else inner.text
            inner = Node(
                Op.CAPTURE, text, inner.atom or inner.op is Op.ALTERNATE, inner.size + 2, inner.height + 1, inner.need
            )
        self.push(inner)

    def _repeat(self, start: int, after: int, last: int, *, low: int, high: int, operator: str) -> int:
        s, lazy = self.pattern, self._flags.lazy
        if s.startswith("?", after):
            after, lazy = after + 1, not lazy
        if last >= 0:
            raise refusal("invalid nested repetition operator", s[last:after])
        if not self.stack or self.stack[-1].op in PSEUDO:
            raise refusal("missing argument to repetition operator", s[start:after])
        inner = self.stack[-1]
        node = self.new(Op.REPEAT)
        written = operator or (f"{{{low}}}" if low == high else f"{{{low},{'' if high < 0 else high}}}")
        # RE2 does not accept a repetition as an atom, and reads a** as an error, too.
        node.text = f"{inner.text if inner.atom else grouped(inner)}{written}{'?' if lazy else ''}"
        if high == 0:
            node.text = "(?:)"  # RE2 counts it as often as the repetitions around it
        node.atom = high == 0
        node.size, node.height = _repeated_size(inner.size, low, high, operator), inner.height + 1
        count = high if high >= 0 else low
        if not operator:
            self.repeats = min(self.repeats * max(count, 1), MAX_SIZE)
        node.need = inner.need if operator else 0 if high == 0 else max(count, 1) * max(inner.need, 1)
        if not operator and count == 0 and high < 0:
            node.need = inner.need
        self.stack[-1] = node
        self.check_limits(node)
        if not operator and max(low, high) >= 2 and node.need > _MAX_REPEAT:
            raise refusal("invalid repeat count", s[start:after])
        return after

    # Escapes and classes.

    def _escape(self, at: int) -> int:
        s = self.pattern
        match s[at + 1 : at + 2]:
            case "A":
                self.push(self.new(Op.EMPTY, r"\A"))
            case "b" | "B" as kind:
                self.push(self.new(Op.EMPTY, f"\\{kind}"))
            case "z":
                self.push(self.new(Op.EMPTY, r"\z"))
            case "C":
                raise refusal("invalid escape sequence", r"\C")
            case "Q":
                end = s.find(r"\E", at + 2)
                for character in s[at + 2 : end if end >= 0 else len(s)]:
                    self.literal(ord(character), fold=self._flags.fold)
                return end + 2 if end >= 0 else len(s)
            case _:
                found = self._class_escape(at)
                if found is None:
                    rune, after = _escaped_rune(s, at)
                    self.literal(rune, fold=self._flags.fold)
                    return after
                self.push_class(found[0])
                return found[1]
        return at + 2

    def _class_escape(self, at: int) -> tuple[Ranges, int] | None:
        r"""The class of \pL, \p{Greek}, \d and similar escapes, and where it ends."""
        s, letter = self.pattern, self.pattern[at + 1 : at + 2]
        if s[at] != "\\" or not letter:
            return None
        if letter in "dswDSW":
            group = PERL[letter.lower()]
            group = folded(group) if self._flags.fold else group
            return (group if letter.islower() else negated(group)), at + 2
        if letter not in "pP" or at + 2 >= len(s):
            return None
        end = at + 3
        name = s[at + 2]
        if name == "{":
            end = s.find("}", at) + 1
            if end == 0:
                raise refusal("invalid character class range", s[at:])
            name = s[at + 3 : end - 1]
        positive = letter == "p"
        if name.startswith("^"):
            positive, name = not positive, name[1:]
        found = unicode_class(name, fold=self._flags.fold)
        if found is None:
            raise refusal("invalid character class range", s[at:end])
        return (found if positive else negated(found)), end

    def _bracket(self, start: int) -> int:
        """parseClass."""
        s, at = self.pattern, start + 1
        positive = not s.startswith("^", at)
        at += not positive
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not s.startswith("]", at):
            first = False
            if at >= len(s):
                raise refusal("missing closing ]", s[start:])
            end = s.find(":]", at + 2) if s.startswith("[:", at) else -1
            if end >= 0:
                name = s[at + 2 : end]
                group = POSIX.get(name.removeprefix("^"))
                if group is None:
                    raise refusal("invalid character class range", s[at : end + 2])
                group = folded(group) if self._flags.fold else group
                ranges += negated(group) if name.startswith("^") else group
                at = end + 2
                continue
            found = self._class_escape(at)
            if found is not None:
                ranges += found[0]
                at = found[1]
                continue
            at = self._range(start, at, ranges)
        clean = union(ranges)
        self.push_class(clean if positive else negated(clean))
        return at + 1

    def _range(self, start: int, at: int, ranges: list[tuple[int, int]]) -> int:
        s, begin = self.pattern, at
        low, at = self._class_rune(start, at)
        high = low
        if s.startswith("-", at) and at + 1 < len(s) and s[at + 1] != "]":
            high, at = self._class_rune(start, at + 1)
            if high < low:
                raise refusal("invalid character class range", s[begin:at])
        ranges += folded(((low, high),)) if self._flags.fold else ((low, high),)
        return at

    def _class_rune(self, start: int, at: int) -> tuple[int, int]:
        s = self.pattern
        if at >= len(s):
            raise refusal("missing closing ]", s[start:])
        return _escaped_rune(s, at) if s[at] == "\\" else (ord(s[at]), at + 1)


def _escaped_rune(s: str, at: int) -> tuple[int, int]:
    """parseEscape: the rune, and where its escape ends."""
    if at + 1 >= len(s):
        raise refusal("trailing backslash at end of expression", "")
    character = s[at + 1]
    if character.isascii() and not character.isalnum():
        return ord(character), at + 2
    if character in _ESCAPED:
        return _ESCAPED[character], at + 2
    octal = _OCTAL.match(s, at + 1)
    if octal is not None:
        return int(octal[0], 8), octal.end()
    hexadecimal = _HEX.match(s, at + 1)
    if hexadecimal is not None:
        digits = (hexadecimal[1] or hexadecimal[2]).lstrip("0") or "0"
        if len(digits) <= 6 and int(digits, 16) <= MAX_RUNE:
            return int(digits, 16), hexadecimal.end()
    raise refusal("invalid escape sequence", s[at : at + 2])


def _repeated_size(inner: int, low: int, high: int, operator: str) -> int:
    """calcSize."""
    if operator:
        return inner + (2 if operator == "*" else 1)
    if high < 0:
        return max(1, 2 + inner if low == 0 else 1 + low * inner)
    return max(1, high * inner + high - low)
