"""What a user asked of the API server, from its audit log, and what roles grant: together the RBAC audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# Everything is written down once, when it is answered; watches when they begin.
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "users": ["system:kube-scheduler"]}, {"level": "Metadata"}],
}


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource ("pods/eviction") of a group; `name` where it is granted for one object only."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def covers(self, asked: Right) -> bool:
        """Whether it allows what was asked."""
        same = (self.group, self.resource, self.verb) == (asked.group, asked.resource, asked.verb)
        return same and self.name in ("", asked.name)


# Used in the scenarios of test_scenarios.py, which says so: with blocks, device taints and gangs of Kubernetes.
SELDOM = {
    Right("", "pods", "patch"),
    Right("resource.k8s.io", "devicetaintrules", "watch"),
    Right("scheduling.k8s.io", "podgroups", "watch"),
}


def flags(root: Path) -> list[str]:
    """The API server's flags for an audit log in `root`."""
    policy = root / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(POLICY), encoding="utf-8")
    return [f"--audit-policy-file={policy}", f"--audit-log-path={root}/audit.log"]


def asked(root: Path, user: str) -> Iterator[tuple[Right, int]]:
    """What the user asked, with the answer's code."""
    with (root / "audit.log").open(encoding="utf-8") as log:
        for line in log:
            entry = json.loads(line)
            target = entry.get("objectRef")
            if entry["user"]["username"] != user or target is None:
                continue
            resource = "/".join(part for part in (target["resource"], target.get("subresource")) if part)
            right = Right(target.get("apiGroup", ""), resource, entry["verb"], target.get("name", ""))
            yield right, entry.get("responseStatus", {}).get("code", 0)


# The ClusterRole system:basic-user, which Kubernetes makes itself, has it.
OF_EVERYBODY = Right("authorization.k8s.io", "selfsubjectaccessreviews", "create")


def answered(asked: Iterable[tuple[Right, int]]) -> tuple[frozenset[Right], frozenset[Right]]:
    """What was allowed and what was refused. An API server that has just started refuses everything for a moment,
    whatever the roles say, so what was allowed at another time was not refused, and neither was what every account may
    do: the controller asks for it only after another refusal, which may be at that moment alone."""
    everything = tuple(asked)
    allowed = frozenset(right for right, code in everything if code != 403)
    return allowed, frozenset(right for right, _ in everything) - allowed - {OF_EVERYBODY}


def granted(roles: Iterable[dict[str, Any]]) -> frozenset[Right]:
    """Everything that roles allow, one by one."""
    return frozenset(
        Right(group, resource, verb, name)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    )
