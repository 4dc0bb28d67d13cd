"""Pages that tell a life that was lived: what a simulated cluster said, and the parts of a page that show it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from click.testing import CliRunner

from autoscaler.cli.main import foreslice
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.store import Store
from autoscaler.report.timeline import TimelineEvent, lines_of, mark_of
from autoscaler.simulation.simulation import Simulation
from autoscaler.simulation.timeline_recorder import TimelineRecorder
from instance_catalog.kubernetes.profile import REFERENCE

_BLOCK = re.compile(r"<!-- transcript: (?P<part>\S+) -->\n```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
JOBS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: eight-gpus}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 8}}]}}}
"""
JOB = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations: {{simulation.foreslice.dev/at: {at}, simulation.foreslice.dev/title: "{title}"{more}}}
spec:
  tolerations: [{{key: foreslice.dev/capacity-block, operator: Exists}}]
  resourceClaims: [{{name: gpus, resourceClaimTemplateName: eight-gpus}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpus}}], requests: {{cpu: "64"}}}}}}]
"""
RUNS_FOR = ", simulation.foreslice.dev/runs-for: {}"


class Lived:
    """A simulated cluster, and what it says as time passes."""

    def __init__(self, simulation: Simulation, *, resync: timedelta = timedelta.max) -> None:
        """`resync`: the controller looks at least so often, whatever happens in the cluster."""
        self._simulation = simulation
        self._resync = resync
        self._told: list[str] = []
        self._at: datetime | None = None
        self._chronicle = TimelineRecorder(simulation.api, self._tell)

    def passes(self, by: timedelta) -> None:
        """Live on for so long."""
        clock = self._simulation.clock
        until = clock.now() + by
        while clock.now() < until:
            self._simulation.run(clock.now() + min(self._resync, until - clock.now()), self._chronicle.observe)

    def said(self) -> str:
        """What was said since this was asked last."""
        text, self._told, self._at = "".join(f"{line}\n" for line in self._told), [], None
        return text

    def _tell(self, event: TimelineEvent) -> None:
        if event.at != self._at:
            self._at = event.at
            self._told.append(f"{event.at:%a %H:%M:%S}")
        head, *rest = [line for line in lines_of(event.occurrence) if line]
        self._told += [f"  {mark_of(event.occurrence)} {head}", *(f"      {line}" for line in rest)]


def typed(line: str, *, hidden: Sequence[str] = ()) -> str:
    """A command as a person types it, and what it prints. `hidden` are options that the page does not show."""
    result = CliRunner().invoke(foreslice, [*shlex.split(line), *hidden], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return f"$ foreslice {line}\n{result.output}"


def compare(path: Path, parts: Mapping[str, str]) -> None:
    """The page shows these parts, all of them and no other. UPDATE_GOLDEN=1 writes them into it."""
    page = path.read_text(encoding="utf-8")
    rewrite: Callable[[re.Match[str]], str] = lambda found: (  # noqa: E731  # the type is the point
        f"<!-- transcript: {found['part']} -->\n```{found['kind']}\n{parts[found['part']]}```\n"
    )
    if os.environ.get("UPDATE_GOLDEN"):
        page = _BLOCK.sub(rewrite, page)
        path.write_text(page, encoding="utf-8")
    shown = {found["part"]: found["text"] for found in _BLOCK.finditer(page)}
    assert shown == {part: text for part, text in parts.items() if text}


def store_of(api: KubernetesApi) -> Store:
    """As `live.read_store` reads it, without asking for the version, which only a server has."""
    store = Store(api, REFERENCE)
    store.refresh()
    return store
