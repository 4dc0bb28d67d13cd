"""The table of rules, and a finding: a Diagnostic with the rule that found it.

Identifiers are stable: people silence findings by them, and code scanning uses them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic, Path


class Level(Enum):
    """ERROR: refused, or never placed. WARNING: will probably surprise. NOTE: worth knowing. Named as in SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mistake. `title` names it, `why` says what happens if it stays."""

    id: str
    level: Level
    title: str
    why: str


INVALID_OBJECT: Final = Rule(
    "invalid-object",
    Level.ERROR,
    "An invalid object",
    "The API server refuses it, or it refers to something that does not exist.",
)
UNKNOWN_FIELD: Final = Rule(
    "unknown-field",
    Level.WARNING,
    "An unknown field",
    "The API server drops it, or refuses the object under strict validation.",
)
QUESTIONABLE: Final = Rule(
    "questionable-object",
    Level.WARNING,
    "An object that does less than it seems to",
    "Part of it is ignored, or nothing uses it.",
)
CEL_COMPILE: Final = Rule(
    "cel-compile",
    Level.ERROR,
    "A selector that does not compile",
    "The API server refuses new objects with it; the scheduler gives up on pods that use a stored one.",
)
CEL_COST: Final = Rule(
    "cel-cost",
    Level.ERROR,
    "A selector whose estimated cost exceeds the limit",
    "The API server estimates the worst case of new expressions and refuses more than 1,000,000 units.",
)
CEL_SIZE: Final = Rule(
    "cel-size",
    Level.ERROR,
    "A selector longer than 10 KiB",
    "The API server refuses it.",
)
CEL_UNRELIABLE: Final = Rule(
    "cel-unreliable",
    Level.WARNING,
    "A selector with unreliable results",
    "The same device may match in one attempt and not in the next.",
)
INVALID_QUANTITY: Final = Rule(
    "invalid-quantity",
    Level.ERROR,
    "A selector with an amount that is not a quantity",
    "It compiles, and fails on every device that it is evaluated on: the scheduler gives up on the pod.",
)
TOO_MANY_ENTRIES: Final = Rule(
    "too-many-entries",
    Level.ERROR,
    "A list or text longer than the API allows",
    "The API server refuses the object.",
)
UNQUALIFIED_NAME: Final = Rule(
    "unqualified-name",
    Level.ERROR,
    "A constraint on an attribute without a domain",
    "The API server refuses it: constraints name attributes as domain/name.",
)
TOO_MANY_DEVICES: Final = Rule(
    "too-many-devices",
    Level.ERROR,
    "A claim for more than 32 devices",
    "The API server accepts it, but the scheduler gives up on every pod that uses it.",
)
FEATURE_OFF: Final = Rule(
    "feature-off",
    Level.ERROR,
    "A field whose feature gate is off",
    "The API server drops the field of new objects; the scheduler gives up on pods whose stored claims have it.",
)
ADMIN_NAMESPACE: Final = Rule(
    "admin-namespace",
    Level.WARNING,
    "Admin access in a namespace without the label for it",
    "The API server refuses it unless the namespace has the label resource.kubernetes.io/admin-access.",
)
MIXED_VERSIONS: Final = Rule(
    "mixed-versions",
    Level.WARNING,
    "Several versions of resource.k8s.io in one set of manifests",
    "The versions nest requests differently, so copied parts do not fit. Kubernetes will stop serving the older ones.",
)
UNGUARDED_CLASS: Final = Rule(
    "unguarded-class",
    Level.WARNING,
    "A DeviceClass that does not check device.driver",
    "Selectors of requests are then evaluated on devices of every driver, and fail on a missing attribute.",
)
SELECTOR_FAILS: Final = Rule(
    "selector-fails",
    Level.ERROR,
    "A selector that fails on nodes that could satisfy the claim",
    "An error is not a mismatch: the scheduler gives up on the pod at the first such device.",
)
SELECTOR_FAILS_ELSEWHERE: Final = Rule(
    "selector-fails-elsewhere",
    Level.WARNING,
    "A selector that fails on some instance types",
    "The scheduler gives up on the pod in clusters that have such nodes, too.",
)
NEVER_MATCHES: Final = Rule(
    "never-matches",
    Level.ERROR,
    "Selectors that match no device of the catalog",
    "No node that can be launched satisfies the claim; its pods stay pending.",
)
RUN_TIME_ONLY: Final = Rule(
    "run-time-only",
    Level.WARNING,
    "A selector that depends on values which exist only on a running node",
    "It cannot be evaluated before launch, so no node is launched for it. Only existing nodes can satisfy it.",
)
CATALOG_GAP: Final = Rule(
    "catalog-gap",
    Level.WARNING,
    "A selector that depends on facts the catalog lacks",
    "It can be evaluated before launch once the catalog has the fact. Until then no node is launched for it.",
)
MORE_THAN_A_NODE: Final = Rule(
    "more-than-a-node",
    Level.ERROR,
    "A request for more devices than any node has",
    "All devices of a claim come from one node, so its pods stay pending.",
)
UNKNOWN_ATTRIBUTE: Final = Rule(
    "unknown-attribute",
    Level.WARNING,
    "An attribute or capacity that no known driver publishes",
    "Reading it without a guard fails; constraints and capacity requests on it cannot be met.",
)
CONSTRAINT_UNMET: Final = Rule(
    "constraint-unmet",
    Level.ERROR,
    "A constraint on an attribute that none of the requested devices has",
    "A device without the attribute does not satisfy the constraint, so the claim's pods stay pending.",
)
UNKNOWN_DRIVER: Final = Rule(
    "unknown-driver",
    Level.WARNING,
    "A selector for a driver that resembles a known one",
    "No device has that driver, so nothing matches.",
)
DRIVER_NOT_PREDICTED: Final = Rule(
    "driver-not-predicted",
    Level.NOTE,
    "A driver whose devices are not predicted",
    "Its selectors cannot be checked. Only nodes that already publish such devices satisfy the claim.",
)
MISSING_TOLERATION: Final = Rule(
    "missing-toleration",
    Level.WARNING,
    "Matching devices carry a taint that the request does not tolerate",
    "The scheduler skips those devices.",
)

NOT_TRIED: Final = Rule(
    "not-tried",
    Level.WARNING,
    "Selectors that are too expensive to evaluate on every device",
    "It is unknown whether they match or fail. The scheduler evaluates them on every device, too.",
)

RULES: Final = (
    INVALID_OBJECT,
    UNKNOWN_FIELD,
    QUESTIONABLE,
    CEL_COMPILE,
    CEL_COST,
    CEL_SIZE,
    CEL_UNRELIABLE,
    INVALID_QUANTITY,
    TOO_MANY_ENTRIES,
    UNQUALIFIED_NAME,
    TOO_MANY_DEVICES,
    FEATURE_OFF,
    ADMIN_NAMESPACE,
    MIXED_VERSIONS,
    UNGUARDED_CLASS,
    SELECTOR_FAILS,
    SELECTOR_FAILS_ELSEWHERE,
    NEVER_MATCHES,
    RUN_TIME_ONLY,
    CATALOG_GAP,
    MORE_THAN_A_NODE,
    UNKNOWN_ATTRIBUTE,
    CONSTRAINT_UNMET,
    UNKNOWN_DRIVER,
    DRIVER_NOT_PREDICTED,
    MISSING_TOLERATION,
    NOT_TRIED,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Beside the Diagnostic because a rule says more than a severity: a level with notes, an id that users suppress,
    a title and a reason for code scanning. Its place is added by whoever knows the file.
    """

    rule: Rule
    diagnostic: Diagnostic

    @classmethod
    def of(cls, rule: Rule, subject: str, path: Path, message: str, next_step: str = "") -> Finding:
        """`subject` as "ResourceClaim default/gpu", `path` the field inside it, () for the whole object."""
        return cls(rule, Diagnostic(message, next_step, path, subject))

    @property
    def level(self) -> Level:
        return self.rule.level

    def at(self, file: str, line: int) -> Finding:
        return replace(self, diagnostic=replace(self.diagnostic, file=file, line=line))
