"""The calls that docs/cluster-autoscaler.md shows are those that are answered: UPDATE_GOLDEN=1 writes them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from autoscaler.externalgrpc.kubernetes_types import NODE, RESOURCE_SLICE
from autoscaler.externalgrpc.messages import InstanceState
from autoscaler.externalgrpc.wire import Json, decode
from tests.unit.externalgrpc.cluster import Cluster

_PAGE: Final = Path(__file__).parents[3] / "docs" / "cluster-autoscaler.md"
_BEGIN, _END = "<!-- transcript: begin -->\n", "<!-- transcript: end -->"


class Transcript:
    """Calls and answers, a line each."""

    def __init__(self) -> None:
        self.cluster = Cluster(pods=1)
        self.lines: list[str] = []

    def wait(self, text: str, **span: float) -> None:
        self.cluster.run(**span)
        self.lines.append(f"# {text}")

    def call(self, method: str, **asked: Any) -> Json:
        found = self.cluster.call(method, **asked)
        given = " ".join(_short(value) for value in asked.values())
        self.lines.append(f"{method} {given}".strip())
        self.lines.extend(f"    {line}" for line in _told(method, found))
        return found


def _short(value: Any) -> str:
    return " ".join(node["providerID"] for node in value) if isinstance(value, list) else str(value)


def _told(method: str, found: Json) -> list[str]:
    match method:
        case "NodeGroups":
            return [f"{g['id']}  {g['minSize']} to {g['maxSize']} nodes" for g in found["nodeGroups"]]
        case "NodeGroupTargetSize":
            return [f"targetSize {found['targetSize']}"]
        case "NodeGroupNodes":
            return [
                f"{i['id']}  {InstanceState(i['status']['instanceState']).name.lower()}" for i in found["instances"]
            ]
        case "NodeGroupTemplateNodeInfo":
            node = decode(NODE, found["nodeBytes"])
            slices = [decode(RESOURCE_SLICE, piece)["spec"] for piece in found["resourceSliceBytes"]]
            size = node["status"]["allocatable"]
            told = [f"Node: {size['cpu']} CPU, {size['memory']} memory, {len(node['metadata']['labels'])} labels"]
            return [*told, *(f"ResourceSlice: {s['driver']}, {len(s['devices'])} devices" for s in slices)]
    return []


def transcript() -> str:
    told = Transcript()
    told.wait("a pod with a claim for one GPU is pending, and there is no node", seconds=30)
    told.call("Refresh")
    group = told.call("NodeGroups")["nodeGroups"][0]["id"]
    told.call("NodeGroupTargetSize", id=group)
    told.call("NodeGroupTemplateNodeInfo", id=group)
    told.call("NodeGroupIncreaseSize", id=group, delta=1)
    told.call("NodeGroupTargetSize", id=group)
    told.call("NodeGroupNodes", id=group)
    told.wait("ten minutes later: the machine has booted, and the pod runs", minutes=10)
    told.call("Refresh")
    (node,) = told.call("NodeGroupNodes", id=group)["instances"]
    told.wait("an hour later: the pod has ended, and the node is empty", hours=1)
    told.call("Refresh")
    told.call("NodeGroupDeleteNodes", id=group, nodes=[{"providerID": node["id"]}])
    told.call("NodeGroupTargetSize", id=group)
    told.call("NodeGroupNodes", id=group)
    return "\n".join(told.lines)


def test_the_page_shows_what_is_answered() -> None:
    shown = f"{_BEGIN}```\n{transcript()}\n```\n"
    page = _PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    wanted = f"{before}{shown}{_END}{after}"
    if os.environ.get("UPDATE_GOLDEN"):
        _PAGE.write_text(wanted, encoding="utf-8")
        return
    assert page == wanted, "run UPDATE_GOLDEN=1 pytest on this file, and read the difference"
