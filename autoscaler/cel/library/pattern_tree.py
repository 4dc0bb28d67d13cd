"""The nodes of a regular expression while it is read, with Go's limits (regexp/syntax/parse.go of Go 1.26.8).

Go refuses patterns that are nested too deeply or would become too large, by the size of its own nodes, so they are
counted in the same way. A node keeps no parts, only the facts about them that are needed later, and its text for RE2.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from autoscaler.cel.library.pattern_classes import Ranges, orbit
from instance_catalog.dataclass import dataclass

# maxHeight, maxSize and maxRunes of parse.go.
_MAX_HEIGHT: Final = 1000
MAX_SIZE: Final = (128 << 20) // (5 * 8)
_MAX_RUNES: Final = (128 << 20) // 4
_MAX_WRITTEN: Final = 2**20


class PatternError(ValueError):
    """Text that is not a regular expression; the message is Go's."""


class TooLargeError(ValueError):
    """A pattern that Go reads, but that is not rewritten here because this would take more than 1 MiB."""


class Op(Enum):
    LITERAL = auto()
    CLASS = auto()  # also a dot
    EMPTY = auto()  # also ^, $ and boundaries
    REPEAT = auto()
    CAPTURE = auto()
    CONCAT = auto()
    ALTERNATE = auto()
    LEFT = auto()  # an open group
    BAR = auto()


PSEUDO: Final = frozenset({Op.LEFT, Op.BAR})


@dataclass(frozen=True, slots=True)
class Flags:
    fold: bool = False
    one_line: bool = True
    dot_newline: bool = False
    lazy: bool = False


@dataclass(slots=True)
class Node:
    """`text` is the text for RE2; `atom` means that a repetition may follow it. `need`: see repeatIsValid."""

    op: Op
    text: str = ""
    atom: bool = True
    size: int = 1
    height: int = 1
    need: int = 0
    fold: bool = False
    flags: Flags | None = None  # of LEFT: the flags that apply again after the group
    captures: bool = False


def refusal(code: str, text: str) -> PatternError:
    """Go's message for a pattern that it refuses."""
    return PatternError(f"error parsing regexp: {code}: `{text}`")


class NodeStack:
    """The nodes read so far; the methods have the names of parse.go."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.stack: list[Node] = []
        self.repeats = 1
        self._nodes = self._free = self._runes = 0
        self._sized = False

    def new(self, op: Op, text: str = "") -> Node:
        """A node, counted like the nodes that Go allocates."""
        if self._free:
            self._free -= 1
        else:
            self._nodes += 1
        return Node(op, text)

    def push(self, node: Node) -> None:
        """Put a node on the stack. Raises PatternError and TooLargeError."""
        self._join_literals()
        self.stack.append(node)
        self.check_limits(node)

    def _join_literals(self) -> None:
        """maybeConcat: join the two literals on top."""
        if len(self.stack) < 2:
            return
        last, before = self.stack[-1], self.stack[-2]
        if last.op is before.op is Op.LITERAL and last.fold is before.fold:
            before.text += last.text
            before.size += last.size
            before.atom = False
            self.stack.pop()
            self._free += 1

    def check_limits(self, node: Node) -> None:
        """Raise PatternError if Go refuses the node, TooLargeError if its text becomes too long."""
        if self._runes > _MAX_RUNES or (self._is_sized() and node.size > MAX_SIZE):
            raise refusal("expression too large", self.pattern)
        if node.height > _MAX_HEIGHT:
            raise refusal("expression nests too deeply", self.pattern)
        if len(node.text) > _MAX_WRITTEN:
            raise TooLargeError

    def _is_sized(self) -> bool:
        """True once nodes and repetitions together could make something large: then Go checks sizes."""
        self._sized = self._sized or self._nodes >= MAX_SIZE // self.repeats
        return self._sized

    def literal(self, rune: int, *, fold: bool) -> None:
        """Add a rune; `fold` means that its case does not matter."""
        same = orbit(rune) if fold else (rune,)
        text = _class_text(tuple((r, r) for r in same)) if len(same) > 1 else _rune_text(rune)
        self._runes += 1
        node = self.new(Op.LITERAL, text)
        node.fold = fold
        self.push(node)

    def push_class(self, ranges: Ranges) -> None:
        """Add a class; one of a single rune is a literal."""
        self._runes += 2 * len(ranges)
        runes = [rune for low, high in ranges[:2] if high - low < 2 for rune in range(low, high + 1)]
        count = sum(high - low + 1 for low, high in ranges)
        node = self.new(Op.CLASS, _class_text(ranges))
        if count == 1:
            node.op = Op.LITERAL
        elif count == 2 and len(runes) == 2 and orbit(runes[0]) == tuple(runes):
            node.op, node.fold = Op.LITERAL, True
        self.push(node)

    def _above(self) -> list[Node]:
        """Take the nodes above the last pseudo operator from the stack."""
        at = len(self.stack)
        while at > 0 and self.stack[at - 1].op not in PSEUDO:
            at -= 1
        taken = self.stack[at:]
        del self.stack[at:]
        return taken

    def concat(self) -> None:
        """Join the nodes above the last open group or bar."""
        self._join_literals()
        parts = self._above()
        if not parts:
            self.push(self.new(Op.EMPTY, "(?:)"))
        elif len(parts) == 1:
            self.push(parts[0])
        else:
            text = "".join(grouped(part) if part.op is Op.ALTERNATE else part.text for part in parts)
            self.push(self._collapsed(Op.CONCAT, parts, text))

    def alternate(self) -> None:
        """Join the alternatives above the last open group."""
        parts = self._above()
        if not parts:
            self.push(self.new(Op.EMPTY, "[^\\x00-\\x{10FFFF}]"))
        elif len(parts) == 1:
            self.push(parts[0])
        else:
            self.push(self._collapsed(Op.ALTERNATE, parts, "|".join(part.text for part in parts)))

    def _collapsed(self, op: Op, parts: list[Node], text: str) -> Node:
        """collapse: parts of the same kind are replaced by their own parts, one level less."""
        node = self.new(op, text)
        self._free += sum(part.op is op for part in parts)
        node.atom = False
        node.size = sum(part.size for part in parts) + (len(parts) - 1 if op is Op.ALTERNATE else 0)
        node.height = 1 + max(part.height - (part.op is op) for part in parts)
        node.need = max(part.need for part in parts)
        return node

    def swap_bar(self) -> bool:
        """swapVerticalBar: move the bar to the top of the stack; single runes become one class."""
        stack = self.stack
        if len(stack) < 2 or stack[-2].op is not Op.BAR:
            return False
        if len(stack) >= 3 and _is_rune(stack[-1]) and _is_rune(stack[-3]):
            last = stack.pop()
            first = stack[-2]
            joined = first.text[3:-1] if first.text.startswith("(?:") else first.text
            first.text = f"(?:{joined}|{last.text})"
            first.op, first.fold = Op.CLASS, False
            self._free += 1
            return True
        stack[-1], stack[-2] = stack[-2], stack[-1]
        return True


def _is_rune(node: Node) -> bool:
    return node.op is Op.CLASS or (node.op is Op.LITERAL and node.size == 1)


def grouped(node: Node) -> str:
    """The text as one atom."""
    return f"(?:{node.text})"


def _rune_text(rune: int) -> str:
    character = chr(rune)
    return character if character.isalnum() and character.isascii() else f"\\x{{{rune:X}}}"


def _class_text(ranges: Ranges) -> str:
    """The text without surrogates, which no text has."""
    parts = []
    for low, high in ranges:
        for a, b in ((low, min(high, 0xD7FF)), (max(low, 0xE000), high)):
            if a <= b:
                parts.append(f"\\x{{{a:X}}}" + (f"-\\x{{{b:X}}}" if b > a else ""))
    return f"[{''.join(parts)}]" if parts else "[^\\x00-\\x{10FFFF}]"
