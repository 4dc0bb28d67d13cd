"""Texts that a tool has to render before they are manifests, and the command that does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

# What only one tool writes: statements of Jinja and of Terraform, actions of Helm, which begin with a field or a word.
_HELM: Final = re.compile(
    r"\{\{-?\s*(?:[.$/(\"]|(?:block|default|define|else|end|fail|if|include|index|lookup|printf|quote|range|required|"
    r"template|toYaml|tpl|with)\b)"
)
_OTHERS: Final = {
    "a Jinja template: give what its tool makes of it": re.compile(r"\{%.*%\}"),
    "a Terraform template: give what `templatefile` makes of it": re.compile(
        r"%\{~?\s*(?:for|if|else|end(?:for|if))\b"
    ),
}
LOOKS_LIKE: Final = "this looks like "
BRACES: Final = f"{LOOKS_LIKE}a template (of Jinja, Mustache or Argo, for example): give what its tool makes of it"


def rendering(text: str, file: str) -> str:
    """The next step for a file with this text in it, if a tool has to render it; "" otherwise."""
    for tool, pattern in _OTHERS.items():
        if pattern.search(text):
            return LOOKS_LIKE + tool
    return f"{LOOKS_LIKE}a Helm template: give what Helm makes of it: {_helm(file)}" if _HELM.search(text) else ""


def _helm(file: str) -> str:
    """The command for the chart of a file, which is the folder around its `templates`."""
    parts = PurePath(file).parts
    if "templates" not in parts[:-1]:
        return "`helm template CHART | foreslice plan -f -`, where CHART is the folder with Chart.yaml"
    last = len(parts) - 1 - parts[::-1].index("templates")
    return f"`helm template {shlex.quote(str(PurePath(*parts[:last])))} | foreslice plan -f -`"


LIKE_A_VARIABLE: Final = "it looks like a variable that was not replaced: "


def substituting(names: Sequence[str], file: str) -> str:
    """The next step for a file with these variables. Others, which shells and programs in it read, stay as they are."""
    listed = " ".join(f"${name}" for name in names)
    given = " ".join(f"{name}=" for name in names)
    source = "FILE" if file in ("", "-") else shlex.quote(file)
    value = "its value after" if len(names) == 1 else "a value after each"
    return f"{LIKE_A_VARIABLE}write {value} `=` and run `{given} envsubst '{listed}' < {source} | foreslice plan -f -`"
