"""The parser: cel-python's Lark grammar, corrected and extended to the syntax cel-go accepts.

cel-python 0.5.0 ships its grammar as celpy/cel.lark. It is read without importing celpy, whose import is slow and
changes process-wide settings. `_CHANGES` replaces the rules in which the package departs from cel-go v0.26.0
(parser/gen/CEL.g4): optional syntax, trailing commas, reserved words, signs outside of literals, the exact escapes of
strings. The parser is built once, at the first use.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lark import Lark

from autoscaler.cel.parser.ast_builder import Builder

_ESCAPES: Final = r"""\\[abfnrtv"'\\?`]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\[0-3][0-7]{2}"""

# One tree level per operator class would make every literal nine nodes deep, so rules that only pass a value on are
# inlined with "?"; operators get one rule each.
_CHANGES: Final = {
    "expr": 'conditionalor | conditionalor "?" conditionalor ":" expr -> ternary',
    "conditionalor": 'conditionaland | conditionalor "||" conditionaland -> logical_or',
    "conditionaland": 'relation | conditionaland "&&" relation -> logical_and',
    "relation": "addition | relation relop addition -> binary",
    "relop": '"<" -> lt | "<=" -> le | ">" -> gt | ">=" -> ge | "==" -> eq | "!=" -> ne | IN_WORD -> contained',
    "IN_WORD": "/in(?![A-Za-z0-9_])/",  # `indyn` is one name
    "addition": "multiplication | addition addop multiplication -> binary",
    "addop": '"+" -> plus | "-" -> minus',
    "multiplication": "unary | multiplication mulop unary -> binary",
    "mulop": '"*" -> times | "/" -> divide | "%" -> modulo',
    "unary": "member | nots member -> negated | minuses member -> negative",
    "nots": '"!" -> first | nots "!" -> another',
    "minuses": '"-" -> first | minuses "-" -> another',
    # With what is a rule of its own there, primary: one step less for every value.
    "member": "member_dot | member_dot_arg | member_index | member_object | member_optdot | member_optindex"
    " | literal | dot_ident_arg | dot_ident | ident_arg | paren_expr | list_lit | map_lit | ident",
    "member_dot": 'member "." field',
    "member_optdot": 'member "." "?" field',
    "field": "IDENT | QUOTED_IDENT",
    "member_optindex": 'member "[" "?" expr "]"',
    "member_object": 'member "{" "}" | member "{" "," "}" | member "{" fieldinits "}" | member "{" fieldinits "," "}"',
    "member_dot_arg": 'member "." IDENT "(" exprlist? ")"',
    "dot_ident_arg": '"." IDENT "(" exprlist? ")"',
    "ident_arg": 'IDENT "(" exprlist? ")"',
    "list_lit": '"[" "]" | "[" "," "]" | "[" listitems "]" | "[" listitems "," "]"',
    "listitems": 'listitem | listitems "," listitem',
    "listitem": 'expr | "?" expr -> optional_item',
    "map_lit": '"{" "}" | "{" "," "}" | "{" mapinits "}" | "{" mapinits "," "}"',
    "mapinits": 'mapentry | mapinits "," mapentry',
    "mapentry": 'expr ":" expr | "?" expr ":" expr -> optional_entry',
    "fieldinits": 'fieldinit | fieldinits "," fieldinit',
    "fieldinit": 'field ":" expr | "?" field ":" expr -> optional_field',
    "literal": "UINT_LIT | FLOAT_LIT | INT_LIT | MLSTRING_LIT | STRING_LIT | BYTES_LIT",
    "INT_LIT": '"0x" HEXDIGIT+ | DIGIT+',
    "FLOAT_LIT": 'DIGIT+ "." DIGIT+ EXPONENT? | "." DIGIT+ EXPONENT? | DIGIT+ EXPONENT',
    "STRING_LIT": rf"""/"(?:{_ESCAPES}|[^"\\\r\n])*"/ | /'(?:{_ESCAPES}|[^'\\\r\n])*'/ | /[rR]"[^"\r\n]*"/"""
    + r""" | /[rR]'[^'\r\n]*'/""",
    "MLSTRING_LIT": rf'''/"""(?:{_ESCAPES}|[^\\])*?"""/ | /\'\'\'(?:{_ESCAPES}|[^\\])*?\'\'\'/'''
    + r''' | /[rR]"""[\s\S]*?"""/ | /[rR]\'\'\'[\s\S]*?\'\'\'/''',
    "QUOTED_IDENT": r"/`[a-zA-Z0-9_.\-\/ ]+`/",
}
_PASSED_ON: Final = frozenset(
    {
        "expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "member",
        "listitem",
    }
)  # fmt: skip
# Rules whose tokens are kept: they say where an operator stands.
_KEPT: Final = frozenset({"relop", "addop", "mulop"})
# Rules and terminals that nothing refers to any more, or that `IDENT` covers: true, false and null are identifiers to
# the lexer, which would otherwise find them inside longer names.
_DROPPED: Final = (
    r"relation_(?:lt|le|gt|ge|eq|ne|in)|addition_(?:add|sub)|multiplication_(?:mul|div|mod)|unary_(?:not|neg)"
    r"|primary|BOOL_LIT|NULL_LIT|RESERVED\.0"
)
_RULE: Final = re.compile(r"^(\??[A-Za-z_0-9.]+)\s*:((?:.|\n[ \t]+(?=\|))*)", re.MULTILINE)


@cache
def parser(*, quoted_names: bool) -> Lark:
    """The LALR(1) parser, which builds the expression while it reads; `quoted_names` allows a.`b` (Kubernetes 1.37).

    Its lexer is contextual, so `in` after a dot arrives as IDENT.
    """
    text = grammar_text()
    if not quoted_names:
        text = text.replace("field: IDENT | QUOTED_IDENT", "field: IDENT")
    return Lark(
        text,
        parser="lalr",
        start="expr",
        maybe_placeholders=False,
        g_regex_flags=re.ASCII,
        transformer=Builder(),
    )


def grammar_text() -> str:
    """cel-python's grammar with the changes applied."""
    package = find_spec("celpy")
    if package is None or package.origin is None:
        raise ImportError("cel-python is not installed; install foreslice with its dependencies")
    stock = (Path(package.origin).parent / "cel.lark").read_text(encoding="utf-8")
    stock = re.sub(r"^\s*//.*\n", "", stock, flags=re.MULTILINE)
    missing = dict(_CHANGES)

    def replaced(found: re.Match[str]) -> str:
        name = found[1]
        if re.fullmatch(_DROPPED, name):
            return ""
        body = missing.pop(name, found[2])
        return f"{_mark(name)}{name}: {body}"

    changed = _RULE.sub(replaced, stock)
    added = [f"{_mark(name)}{name}: {body}" for name, body in missing.items()]
    return "\n".join([changed, *added, ""])


def _mark(name: str) -> str:
    """lark's mark for a rule: "?" hands a single child on, "!" keeps the tokens."""
    if name in _PASSED_ON:
        return "?"
    return "!" if name in _KEPT else ""
