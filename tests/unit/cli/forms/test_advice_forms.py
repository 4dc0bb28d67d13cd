"""The smallest change in the forms of a plan for people."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from autoscaler.cli.main import foreslice

POD = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {team: "a_b"}
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}, limits: {aws.amazon.com/neuron: "1"}}}]
"""


def output(directory: Path, *options: str) -> str:
    file = directory / "pod.yaml"
    file.write_text(POD)
    return CliRunner().invoke(foreslice, ["plan", "-f", str(file), *options], catch_exceptions=False).stdout


def test_steps_result_and_notes_have_lines_of_their_own(tmp_path: Path) -> None:
    section = output(tmp_path).partition("Smallest change that places it\n")[2].splitlines()
    heads = [line for line in section if not line.startswith("        ")]
    assert [line[: len(start)] for line, start in zip(heads, STARTS, strict=True)] == list(STARTS)
    assert max(map(len, section)) <= 120


STARTS = (
    "  default/p:",
    "    (1) create a CapacityPool with",
    "    (2) run the device plugin",
    "    → 1 × ",
    "  note: --write-objects FILE",
)


def test_markdown_has_the_same_list(tmp_path: Path) -> None:
    section = output(tmp_path, "-o", "markdown").partition("### Smallest change that places it\n")[2].splitlines()
    assert section[:3] == ["", "default/p:", ""]
    assert section[3].startswith("- (1) create a CapacityPool with spec.limits.nodes 1 or more")
    assert "team=a\\_b in spec.labels" in section[3]
    assert section[5].startswith("- → 1 × ")


def test_a_page_has_the_same_list(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    output(tmp_path, "--html", str(page))
    assert "<li>(1) create a CapacityPool with" in page.read_text(encoding="utf-8")


HOSTILE = "<script>alert(1)</script>|`x`\\x1b[31m@bob"
ASKING = f"""apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{{matchExpressions: [{{key: team, operator: In, values: ["{HOSTILE}"]}}]}}]
  containers: [{{name: c, image: i, resources: {{requests: {{cpu: "1"}}, limits: {{nvidia.com/gpu: "1"}}}}}}]
"""


def test_values_of_others_are_no_markup(tmp_path: Path) -> None:
    """The API server takes any text as a value of a node affinity."""
    file, page = tmp_path / "pod.yaml", tmp_path / "plan.html"
    file.write_text(ASKING)
    arguments = ["plan", "-f", str(file), "-o", "markdown", "--html", str(page)]
    shown = CliRunner().invoke(foreslice, arguments, catch_exceptions=False).stdout
    _, _, section = shown.partition("### Smallest change that places it\n")
    assert "<script>" not in section
    written = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in written
    assert "\x1b" not in section + written
    assert "@bob" not in section
    assert "<script>" not in written
