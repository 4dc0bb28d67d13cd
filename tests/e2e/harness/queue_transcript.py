"""The transcript of docs/kueue.md: what a cluster says of a queued job. UPDATE_GOLDEN=1 writes it again.

Names that the API server and digests choose, and seconds, differ from run to run and are not compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import EVENTS
from tests.e2e.harness.installation import ROOT, Installation

_PAGE: Final = ROOT / "docs" / "kueue.md"
_BEGIN: Final = "<!-- transcript of make e2e -->\n```console\n"
_END: Final = "```\n"
_KINDS: Final = ("Workload", "ProvisioningRequest")
_BY_CHANCE: Final = ((r"job-train-[0-9a-f]{5}", "job-train-x"), (r"gpu-[0-9a-f]{10}", "gpu-x"), (r"\b\d+s\b", "0s"))


def told(cluster: Installation, request: Object) -> str:
    """The events of the workload and its request in their order, and what `foreslice explain` says."""
    name = request["metadata"]["name"]
    workload = request["metadata"]["ownerReferences"][0]["name"]
    admin = cluster.control_plane.identity("reader", "system:masters")
    asked = ["explain", f"provreq/{name}"]
    command = [sys.executable, "-m", "autoscaler.cli", *asked, "--kubeconfig", str(admin)]
    explained = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    events = sorted(
        cluster.api.list(EVENTS, namespace="default").items, key=lambda event: int(event["metadata"]["resourceVersion"])
    )
    lines = [
        f"{event['reason']:<28}{event['message']}"
        for event in events
        if event["involvedObject"]["kind"] in _KINDS and event["involvedObject"]["name"] in (name, workload)
    ]
    listed = (
        "$ kubectl get events --sort-by=.metadata.resourceVersion -o custom-columns=REASON:.reason,MESSAGE:.message\n"
    )
    titled = "".join(f"{line}\n" for line in (f"{'REASON':<28}MESSAGE", *lines))
    return f"{listed}{titled}$ foreslice {' '.join(asked)}\n{explained}"


def documented() -> str:
    """The transcript as the page has it."""
    return _PAGE.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]


def masked(text: str) -> list[str]:
    """What is compared: lines in any order, since events of one second have none."""
    for pattern, instead in _BY_CHANCE:
        text = re.sub(pattern, instead, text)
    return sorted(text.splitlines())


def held(text: str) -> None:
    """Compare the page with this transcript, or write it there."""
    if os.environ.get("UPDATE_GOLDEN"):
        before, _, after = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
        _PAGE.write_text(f"{before}{_BEGIN}{text}{_END}{after.partition(_END)[2]}", encoding="utf-8")
    assert masked(documented()) == masked(text)
