"""The parser of CEL: cel.lark, which changes cel-python's grammar to the syntax that cel-go v0.26.0 accepts.

celpy is found but not imported: its import is slow and changes settings of the process.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lark import Lark
from lark.exceptions import GrammarError

from autoscaler.cel.parser.ast_builder import Builder
from autoscaler.cel.parser.kept_tables import kept_tables

_QUOTED_FIELDS: Final = "\n%extend field: QUOTED_IDENT\n"


@cache
def parser(*, quoted_names: bool) -> Lark:
    """The LALR(1) parser, which builds the expression while it reads; `quoted_names` allows a.`b` (Kubernetes 1.37).

    Its lexer is contextual, so `in` after a dot arrives as IDENT.
    """
    package = find_spec("celpy")
    if package is None or package.origin is None:
        raise ImportError("cel-python is not installed; install foreslice with its dependencies")
    changes = Path(__file__).with_name("cel.lark").read_text(encoding="utf-8")
    try:
        return Lark(
            changes + _QUOTED_FIELDS * quoted_names,
            import_paths=[str(Path(package.origin).parent)],
            parser="lalr",
            start="expr",
            maybe_placeholders=False,
            g_regex_flags=re.ASCII,
            transformer=Builder(),
            cache=kept_tables("cel-parser-quoted-names" if quoted_names else "cel-parser") or False,
        )
    except GrammarError as error:
        raise ImportError(
            f"the grammar of the installed cel-python does not fit cel.lark ({error});"
            " install the release that foreslice requires"
        ) from error
