"""The table of rules. Identifiers are stable: people silence findings by them, and code scanning tracks by them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Level(Enum):
    """ERROR: refused, or never placed. WARNING: will probably surprise. NOTE: worth knowing. Named as in SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is looked for. `title` names it, `why` says what happens if it is left as it is."""

    id: str
    level: Level
    title: str
    why: str


INVALID_OBJECT: Final = Rule(
    "invalid-object",
    Level.ERROR,
    "The object cannot be used as it is written",
    "The API server refuses it, or it refers to something that does not exist.",
)
UNKNOWN_FIELD: Final = Rule(
    "unknown-field",
    Level.WARNING,
    "A field that Kubernetes does not know",
    "The API server drops it, or refuses the object under strict validation.",
)
QUESTIONABLE: Final = Rule(
    "questionable-object",
    Level.WARNING,
    "The object is accepted but does less than it seems to",
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
    "A selector that Kubernetes itself does not answer reliably",
    "The same device may match once and not the next time.",
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
    "Admin access in a namespace that is not known to allow it",
    "The API server refuses it unless the namespace is labelled for admin access.",
)
MIXED_VERSIONS: Final = Rule(
    "mixed-versions",
    Level.WARNING,
    "Several versions of resource.k8s.io in one set of manifests",
    "The versions nest requests differently, so that copied pieces do not fit; older ones will stop being served.",
)
UNGUARDED_CLASS: Final = Rule(
    "unguarded-class",
    Level.WARNING,
    "A DeviceClass that does not check device.driver",
    "Selectors of requests then meet devices of every driver, and one that reads a missing attribute fails.",
)
SELECTOR_FAILS: Final = Rule(
    "selector-fails",
    Level.ERROR,
    "A selector that raises an error on nodes that could serve the claim",
    "An error is not a mismatch: the scheduler gives up on the pod when it reaches such a device.",
)
SELECTOR_FAILS_ELSEWHERE: Final = Rule(
    "selector-fails-elsewhere",
    Level.WARNING,
    "A selector that raises an error on some types of node",
    "The scheduler gives up on the pod in clusters that also have such nodes.",
)
NEVER_MATCHES: Final = Rule(
    "never-matches",
    Level.ERROR,
    "Selectors that no device of the catalog meets",
    "No node that can be bought serves the claim; its pods stay pending.",
)
RUN_TIME_ONLY: Final = Rule(
    "run-time-only",
    Level.WARNING,
    "A selector that depends on values which exist only on a running node",
    "It cannot be decided before launch, so no node is bought for it; only existing nodes can serve it.",
)
CATALOG_GAP: Final = Rule(
    "catalog-gap",
    Level.WARNING,
    "A selector that depends on facts the catalog lacks",
    "It could be decided before launch if the catalog had the fact; until then no node is bought for it.",
)
MORE_THAN_A_NODE: Final = Rule(
    "more-than-a-node",
    Level.ERROR,
    "A request for more devices than any node has",
    "All devices of a claim come from one node here, so its pods stay pending.",
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
    "A device without the attribute does not meet the constraint, so the claim's pods stay pending.",
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
    "Whether its selectors match cannot be checked; only nodes that already publish such devices serve the claim.",
)
MISSING_TOLERATION: Final = Rule(
    "missing-toleration",
    Level.WARNING,
    "Matching devices carry a taint that the request does not tolerate",
    "The scheduler leaves those devices out.",
)

NOT_TRIED: Final = Rule(
    "not-tried",
    Level.WARNING,
    "Selectors that take too much work to try on every device",
    "Whether they match or fail is not known; the scheduler, too, spends that work on every device.",
)

RULES: Final = (
    INVALID_OBJECT,
    UNKNOWN_FIELD,
    QUESTIONABLE,
    CEL_COMPILE,
    CEL_COST,
    CEL_SIZE,
    CEL_UNRELIABLE,
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
