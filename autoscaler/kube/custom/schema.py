"""Field types of the custom resources' schemas, and rules that exist once for Python and for CEL.

A `Rule` has one condition in two forms: as a CEL expression, which the API server enforces, and as a Python predicate,
which `foreslice plan` applies to manifests without a cluster. A unit test evaluates both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.label_syntax import (
    KEY_STEP,
    LABEL_KEY_PATTERN,
    LABEL_VALUE_PATTERN,
    LONGEST_PREFIX,
    VALUE_STEP,
    is_label_key,
)
from instance_catalog.kubernetes.labels import GROUP
from instance_catalog.kubernetes.node_selector import BadSelectorError, Requirement, check_requirement
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.kubernetes.taint import Taint

T = TypeVar("T")

VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
# Names of custom objects become label values.
NAME_LENGTH: Final = 63
# No duration, quantity or amount needs more characters.
SHORT: Final = 32

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = 10 * 366 * 86400
_DURATION_PART: Final = re.compile(r"([0-9]+)([smhd])")
# RFC 3339; fromisoformat alone would also accept week dates and times without a zone.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
SHORTEST_BOOT: Final = timedelta(minutes=2)
LONGEST_BOOT: Final = timedelta(days=1)
DURATION_PATTERN: Final = r"^([0-9]+[smhd])+$"
DOLLARS_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?$"
QUANTITY_PATTERN: Final = r"^[+]?[0-9.]+([numkKMGTPE]i?|[eE][-+]?[0-9]+)?$"
NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
CRON_PATTERN: Final = r"^[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/?#-]+){4}$"
TIME_ZONE_PATTERN: Final = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"
# The next step for a text that does not match.
PATTERN_STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NAME_PATTERN: "use lower-case letters, digits, - and ., with a letter or digit at both ends",
        CRON_PATTERN: "write five cron fields, such as 0 8 * * 1-5",
        TIME_ZONE_PATTERN: "write an IANA name, such as Europe/Berlin or UTC",
        LABEL_KEY_PATTERN: KEY_STEP,
        LABEL_VALUE_PATTERN: VALUE_STEP,
    }
)
PERCENTAGE_PATTERN: Final = r"^((100|[0-9]{1,2})%|[0-9]+)$"


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on an object. `holds` is None for transition rules (they use oldSelf), which need a server.

    `field` is the camelCase field of the message, "" for the whole object.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""

    def validation(self) -> dict[str, str]:
        """The entry of x-kubernetes-validations."""
        place = {"fieldPath": f".{self.field}"} if self.field else {}
        return {"rule": self.cel, "message": self.message, **place}


class ApiModel(BaseModel):
    """An object of the API: camelCase names, no unknown fields, no conversions between JSON types."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    RULES: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _obey_rules(self) -> Self:
        for rule in self.RULES:
            if rule.holds is not None and not rule.holds(self):
                raise PydanticCustomError("rule", "{message}", {"message": rule.message, "field": rule.field})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema with the rules of the class and the texts below its fields."""
        from autoscaler.kube.custom.field_docs import field_docs  # only the generation of schemas needs it

        schema = handler.resolve_ref_schema(handler(core_schema))
        docs = field_docs(cls)
        for name, field in cls.model_fields.items():
            if docs.get(name):
                schema["properties"][field.alias]["description"] = docs[name]
        if cls.RULES:
            schema["x-kubernetes-validations"] = [rule.validation() for rule in cls.RULES]
        return schema

    def manifest(self) -> dict[str, Any]:
        """The object as JSON, without absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


@lru_cache(maxsize=1024)
def duration(text: str) -> timedelta:
    """ "1h30m" as a timedelta; the message of a ValueError shows the format."""
    parts = _DURATION_PART.findall(text) if len(text) <= SHORT else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write it like 30m, 1h30m or 2d")
    seconds = sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is longer than ten years: write it like 30m, 1h30m or 2d")
    return timedelta(seconds=seconds)


def duration_text(value: timedelta) -> str:
    """The shortest form that `duration` reads back, in days, hours, minutes and seconds."""
    left, text = int(value.total_seconds()), ""
    for unit, seconds in reversed(_UNIT_SECONDS.items()):
        count, left = divmod(left, seconds)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def moment(text: str) -> datetime:
    """An RFC 3339 time as aware UTC; the message of a ValueError shows the format."""
    try:
        found = datetime.fromisoformat(text.upper()).astimezone(UTC) if _TIME.fullmatch(text) else None
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError(f"{text!r} is not a time with zone: write it like 2027-01-31T11:30:00Z")
    return found


def moment_text(value: datetime) -> str:
    """The format of times in the API server; microseconds only if there are any."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _duration(text: str) -> str:
    duration(text)
    return text


def _boot_timeout(text: str) -> str:
    if not SHORTEST_BOOT <= duration(text) <= LONGEST_BOOT:
        raise ValueError(f"{text!r} is not a boot time-out: it is from {duration_text(SHORTEST_BOOT)} to 1d")
    return text


def _moment(text: str) -> str:
    moment(text)
    return text


def _text(value: str | int) -> str:
    text = str(value)
    if len(text) > SHORT:
        raise ValueError(f"{text[:SHORT]!r}… has more than {SHORT} characters: write a shorter one")
    return text


def _quantity(value: str | int) -> str | int:
    try:
        found = Quantity.parse(_text(value))
    except QuantityError:
        raise ValueError(f'{value!r} is not a quantity: write it like 500m or "40Gi"') from None
    if found.sign < 0:
        raise ValueError(f"{value!r} is negative: write a quantity of zero or more")
    return value


def _dollars(value: str | int) -> str | int:
    if not re.fullmatch(DOLLARS_PATTERN, _text(value)):
        raise ValueError(f'{value!r} is not an amount of dollars: write it like 250 or "99.50"')
    return value


def _percentage(value: str | int) -> str | int:
    if not re.fullmatch(PERCENTAGE_PATTERN, _text(value)):
        raise ValueError(f'{value!r} is neither a number of nodes nor a percentage: write it like 2 or "10%"')
    return value


def _label_keys(labels: dict[str, str]) -> dict[str, str]:
    for key in labels:
        if not is_label_key(key):
            raise ValueError(f"{key!r} is not a label key: {KEY_STEP}")
    return labels


def _int_or_string(pattern: str) -> WithJsonSchema:
    # pydantic applies no pattern to integers, and neither does the API server.
    either = [{"type": "integer"}, {"type": "string"}]
    return WithJsonSchema({"anyOf": either, "x-kubernetes-int-or-string": True, "pattern": pattern, "maxLength": SHORT})


DurationText = Annotated[
    str,
    AfterValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "maxLength": SHORT}),
]
# From a launch to the Node: a machine without time to boot would be ended and launched again for ever.
BootTimeoutText = Annotated[
    str,
    AfterValidator(_boot_timeout),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "maxLength": SHORT}),
]
TimeText = Annotated[str, AfterValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
QuantityValue = Annotated[str | int, AfterValidator(_quantity), _int_or_string(QUANTITY_PATTERN)]
DollarsValue = Annotated[str | int, AfterValidator(_dollars), _int_or_string(DOLLARS_PATTERN)]
NodesOrPercentage = Annotated[str | int, AfterValidator(_percentage), _int_or_string(PERCENTAGE_PATTERN)]
# JSON lists as tuples, so that models are deeply immutable; the only conversion that strict models allow.
Items: TypeAlias = Annotated[tuple[T, ...], Strict(strict=False)]
# pydantic copies a default for each model.
NO_ENTRIES: Final[dict[str, Any]] = {}
Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH, pattern=NAME_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=253)]
LongText = Annotated[str, StringConstraints(max_length=1024)]
LabelKey = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=LABEL_KEY_PATTERN)]
LabelValue = Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE_PATTERN)]
# A pattern cannot check the keys of a map, so a rule does.
_LABEL_KEYS: Final = {
    "rule": f"self.all(key, key.matches(r'{LABEL_KEY_PATTERN}') && key.split('/')[0].size() <= {LONGEST_PREFIX})",
    "message": f"no label key: {KEY_STEP}",
}
Labels = Annotated[
    dict[str, LabelValue],
    Field(max_length=64, json_schema_extra={"x-kubernetes-validations": [dict(_LABEL_KEYS)]}),
    AfterValidator(_label_keys),
]
# As recorded at a launch, perhaps by an earlier version: with a record that cannot be read, the machine would be lost.
# An invalid label is refused where it is used. As many as a node gets: from its pool (64 labels, 50 taints, 50 startup
# taints), and from its offering, drivers and block.
RecordedLabels = Annotated[dict[str, Annotated[str, StringConstraints(max_length=63)]], Field(max_length=128)]
Quantities = Annotated[dict[str, QuantityValue], Field(max_length=16)]
CapacityTypeName = Literal["capacity-block", "reserved", "flex-start", "spot", "on-demand"]
# namespace/name: 63 characters, a slash, and the 253 of a DNS subdomain.
PodKey = Annotated[str, StringConstraints(min_length=1, max_length=63 + 1 + 253)]
PodKeys = Annotated[Items[PodKey], Field(max_length=512)]


def dollars(value: str | int | None) -> Decimal | None:
    """An amount as exact decimal."""
    return None if value is None else Decimal(str(value))


class RequirementSpec(ApiModel):
    """One requirement, as in Karpenter's NodePools and in node affinity."""

    key: Text
    """A label or requirement key, such as node.kubernetes.io/instance-type."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[Items[Annotated[str, StringConstraints(max_length=253)]], Field(max_length=100)] = ()

    RULES = (
        Rule(
            "self.operator in ['In', 'NotIn'] ? size(self.values) > 0 : "
            "(self.operator in ['Gt', 'Lt'] ? size(self.values) == 1 && self.values[0].matches('^[+-]?[0-9]+$') : "
            "size(self.values) == 0)",
            "In and NotIn need values, Gt and Lt exactly one integer, Exists and DoesNotExist take none",
            lambda self: _well_formed(self.model()),
            field="values",
        ),
    )

    def model(self) -> Requirement:
        return Requirement(self.key, self.operator, self.values)


def _well_formed(requirement: Requirement) -> bool:
    try:
        check_requirement(requirement)
    except BadSelectorError:
        return False
    return True


class RecordedTaint(ApiModel):
    """A node taint as recorded at a launch."""

    # Like RecordedLabels.
    key: Text
    value: Annotated[str, StringConstraints(max_length=63)] = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

    def model(self) -> Taint:
        return Taint(self.key, self.value, self.effect)


class TaintSpec(RecordedTaint):
    """A node taint."""

    key: LabelKey
    value: LabelValue = ""


def taint_json(taint: Taint) -> dict[str, str]:
    """The entry of `taints` in a manifest."""
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


class Condition(ApiModel):
    """metav1.Condition."""

    type: Text
    status: Literal["True", "False", "Unknown"]
    observed_generation: Annotated[int, Field(ge=0)] = 0
    last_transition_time: TimeText
    reason: Text
    message: Annotated[str, StringConstraints(max_length=32768)] = ""


Conditions = Annotated[
    Items[Condition],
    Field(
        max_length=32,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
