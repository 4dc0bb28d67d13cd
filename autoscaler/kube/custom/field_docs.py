"""The text below each field of a model, which describes the field in the schema of the API server.

pydantic could read it as well, from the source of each class when the class is created: this took a fifth of the time
to read one CapacityPool. Only the generation of schemas needs it.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent


def field_docs(cls: type) -> dict[str, str]:
    """Field → text, of the class and its base classes."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if one.__module__.startswith("autoscaler."):
            found |= _own_docs(one)
    return found


def _own_docs(cls: type) -> dict[str, str]:
    definition = ast.parse(dedent(inspect.getsource(cls))).body[0]
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    found = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            # A field that is defined again has the text of the new definition, or none.
            found[field.target.id] = _text(text)
    return found


def _text(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
