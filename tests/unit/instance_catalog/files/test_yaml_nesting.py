"""Text that nests absurdly deep ends as an error, not the process: libyaml composes by recursion."""

from __future__ import annotations

import subprocess
import sys

import pytest

from instance_catalog.files.yaml_text import YamlTextError, read


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000 + "]" * 100_000, id="lists"),
        pytest.param("{a: " * 100_000 + "}" * 100_000, id="mappings"),
        pytest.param("- " * 100_000 + "x", id="dashes"),
        pytest.param("? " * 100_000 + "x", id="keys"),
        pytest.param("\n".join(f"{' ' * depth}a:" for depth in range(600)), id="indentation"),
    ],
)
def test_deep_text_is_refused(text: str) -> None:
    # In a process of its own: where it is not refused, the process dies.
    program = (
        "import sys\nfrom instance_catalog.files.yaml_text import YamlTextError, read\n"
        "try:\n    read(sys.stdin.read())\nexcept YamlTextError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "text that nests too deep\n")


def test_many_brackets_are_not_deep() -> None:
    assert len(read("[" + "[x]," * 2000 + "]")) == 2000


def test_what_is_no_yaml_is_told_as_before() -> None:
    with pytest.raises(YamlTextError, match="no YAML"):
        read("[" + "[x]," * 1000 + "}")
