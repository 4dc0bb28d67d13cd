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
    chart = str(PurePath(*parts[:last]))
    return f"`helm template {shlex.quote(f'./{chart}' if chart.startswith('-') else chart)} | foreslice plan -f -`"


LIKE_A_VARIABLE: Final = "it looks like a variable that was not replaced: "


# Variables that a shell, the loader of programs or the C library reads, so that a value meant for a manifest would
# change which program runs, or how; and those that bash lets nobody set (bash(1), Shell Variables; ld.so(8)).
_STEERING: Final = re.compile(
    r"PATH|path|fpath|IFS|ENV|CDPATH|UID|EUID|PPID|SHELLOPTS|PS[0-4]|PROMPT_COMMAND|BASH.*|ZDOTDIR|LD_.*|DYLD_.*|GLIBC_TUNABLES|"
    r"MALLOC_.*|GCONV_PATH|LOCPATH|NLSPATH|LANG|LANGUAGE|LC_.*|TEXTDOMAIN.*"
)


def substituting(names: Sequence[str], file: str) -> str:
    """The next step for a file with these variables. Others, which shells and programs in it read, stay as they are."""
    safe = [name for name in names if not _STEERING.fullmatch(name)]
    steering = [f"${name}" for name in names if name not in safe]
    into = f"write the value of {' and '.join(steering)} into the file: shells and programs read variables of that name"
    if not safe:
        return f"{LIKE_A_VARIABLE}{into}"
    listed = " ".join(f"${name}" for name in safe)
    given = " ".join(f"{name}=" for name in safe)
    source = "FILE" if file in ("", "-") else shlex.quote(file)
    value = "its value after" if len(safe) == 1 else "a value after each"
    command = f"`{given} envsubst '{listed}' < {source} | foreslice plan -f -`"
    return f"{LIKE_A_VARIABLE}{f'{into}; ' if steering else ''}write {value} `=` and run {command}"


def filling_expressions(names: Sequence[str], file: str) -> str:
    """The next step for a file in which the variables are expressions of Chainsaw: envsubst leaves the parentheses."""
    source = "FILE" if file in ("", "-") else shlex.quote(file)
    edits = " ".join(f"-e 's|(${name})|VALUE|'" for name in names)
    return (
        "it looks like an expression of Chainsaw, which fills it in while it runs the test: write the value for each "
        f"VALUE and run `sed {edits} < {source} | foreslice plan -f -`"
    )


def writing_names(names: Sequence[str], file: str) -> str:
    """The next step for a file in which names such as SET_AT_RUNTIME stand for values, unknown to envsubst. The longest
    is replaced first, as another may be a part of it."""
    source = "FILE" if file in ("", "-") else shlex.quote(file)
    edits = " ".join(f"-e 's|{name}|VALUE|g'" for name in sorted(names, key=lambda name: (-len(name), name)))
    write = "the value for VALUE" if len(names) == 1 else "a value for each VALUE"
    return f"{LIKE_A_VARIABLE}write {write} and run `sed {edits} < {source} | foreslice plan -f -`"
