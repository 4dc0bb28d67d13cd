"""What `plan` and `explain` say of a cluster whose free GPUs are apart."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from autoscaler.cli.explain import explain
from autoscaler.cli.plan import plan

EXAMPLE = Path(__file__).parents[3] / "docs/examples/cluster/fragmented.yaml"
MOVE = {"pod": "default/chat", "from": "node-1", "to": "node-2"}


def test_the_document_has_both() -> None:
    result = CliRunner().invoke(plan, ["-f", str(EXAMPLE), "-o", "json"])
    document = json.loads(result.stdout)
    (measured,) = document["summary"]["fragmentation"]
    assert (measured["accelerator"], measured["devices"], measured["free"]) == ("NVIDIA L40S", 8, 5.0)
    assert (measured["unusable"], measured["percent"], measured["kindsOfPods"]) == (1.667, 33.3, 3)
    (room,) = document["room"]
    assert (room["pods"], room["moves"], room["devices"]) == (["default/train"], [MOVE], {"node-1": 4})
    assert room["usdPerHour"] == document["summary"]["usdPerHour"]


def test_without_nodes_there_is_neither(tmp_path: Path) -> None:
    documents = EXAMPLE.read_text(encoding="utf-8").split("---\n")
    pending = [text for text in documents if "name: train" in text]
    (tmp_path / "pending.yaml").write_text("---\n".join(pending), encoding="utf-8")
    document = json.loads(CliRunner().invoke(plan, ["-f", str(tmp_path), "-o", "json"]).stdout)
    assert "fragmentation" not in document["summary"]
    assert "room" not in document


def test_the_page_says_it(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    CliRunner().invoke(plan, ["-f", str(EXAMPLE), "--html", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "1.7 of 5 free devices (33%) cannot serve" in text
    assert "moving default/chat from node-1 to node-2" in text


def test_explain_shows_the_moves_with_the_pod() -> None:
    result = CliRunner().invoke(explain, ["-f", str(EXAMPLE), "train"])
    assert "Moves that would make room:\n  moving default/chat from node-1 to node-2 makes room" in result.stdout
    assert "Moves that would" not in CliRunner().invoke(explain, ["-f", str(EXAMPLE), "chat"]).stdout
