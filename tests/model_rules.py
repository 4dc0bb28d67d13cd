"""Every request that a suite sends, held against botocore's service models, and counted.

botocore itself checks types, required members and smallest sizes before it sends a request. AWS also refuses values
that are not in an enum, that do not match a pattern, and that are too long: `Census` checks those, by an event hook
that sees the parameters as they are about to be serialised. What it finds is raised where the call is made and kept
as well, since the autoscaler turns any failure of a provider into that provider's trouble; conftest.py fails the test
that kept some.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from botocore.model import ListShape, MapShape, OperationModel, Shape, StringShape, StructureShape

# Java writes the Unicode classes that Python's re does not know; each is widened here, never narrowed.
_JAVA_CLASSES: Final = {
    r"\p{L}": r"\w",
    r"\p{Z}": r"\s",
    r"\p{N}": r"\d",
    r"\p{M}": r"\w",
    r"\p{S}": "$+<=>^`|~",
    r"\p{P}": r"!-/:-@\[-`{-~",
    r"\p{Print}": r"\x20-\x7e",
    r"\p{ASCII}": r"\x00-\x7f",
    r"\p{Graph}": r"\x21-\x7e",
    r"\p{Alnum}": "0-9A-Za-z",
    r"\p{C}": r"\x00-\x1f",
    r"\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF": r"\u0020-\U0010FFFF",
}
# Types are sold before the SDK's release that lists them, and EC2 takes any name it sells.
_OPEN_ENUMS: Final = frozenset({"InstanceType"})


# EC2's model is silent where its API reference is not. Smallest and largest length or size, by shape and member.
# Sources: EC2 API reference (RunInstances, CreateFleet, launch templates, DescribeInstances, TerminateInstances); EC2
# user guide, "Tag restrictions".
_DOCUMENTED: Final[Mapping[tuple[str, str], tuple[int, int]]] = {
    ("RunInstancesRequest", "ClientToken"): (1, 64),
    ("CreateFleetRequest", "ClientToken"): (1, 64),
    ("CreateLaunchTemplateRequest", "LaunchTemplateName"): (3, 128),
    ("CreateLaunchTemplateVersionRequest", "LaunchTemplateName"): (3, 128),
    ("DescribeInstancesRequest", "MaxResults"): (5, 1000),
    ("DescribeInstancesRequest", "Filters"): (0, 50),
    ("TerminateInstancesRequest", "InstanceIds"): (1, 1000),
    ("RequestLaunchTemplateData", "UserData"): (0, 4 * -(-16 * 1024 // 3)),
    ("TagSpecification", "Tags"): (1, 50),
    ("LaunchTemplateTagSpecificationRequest", "Tags"): (1, 50),
    ("Filter", "Values"): (1, 200),
    ("Tag", "Key"): (1, 128),
    ("Tag", "Value"): (0, 256),
}


class BadRequestError(AssertionError):
    """A request that AWS would refuse as it is written."""


@dataclass
class Census:
    """What was sent: calls by service and operation, and the violations of all of them."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def attach(self, client: Any) -> Any:
        """Watch a client's requests."""
        client.meta.events.register_last("before-parameter-build", self._look, unique_id=f"census-{id(self)}")
        return client

    def _look(self, params: Mapping[str, Any], model: OperationModel, **_: object) -> None:
        name = (model.service_model.service_name, model.name)
        self.calls[name] += 1
        found = list(violations(model, params))
        if found:
            text = f"{name[0]}:{name[1]}: {'; '.join(found)}"
            self.violations.append(text)
            raise BadRequestError(text)


CENSUS: Final = Census()


def violations(model: OperationModel, params: Mapping[str, Any]) -> Iterator[str]:
    """What AWS would refuse of these parameters, each with its path."""
    if model.input_shape is not None:
        yield from _of(model.input_shape, params, "")


def _of(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if value is None:
        return
    match shape:
        case StructureShape():
            for name, below in value.items():
                member = shape.members.get(name)
                if member is None:
                    yield f"{path}.{name}: no such member"
                else:
                    yield from _documented(shape.name, name, below, path)
                    yield from _of(member, below, f"{path}.{name}")
        case ListShape():
            yield from _size(shape, len(value), path)
            for index, below in enumerate(value):
                yield from _of(shape.member, below, f"{path}[{index}]")
        case MapShape():
            yield from _size(shape, len(value), path)
            for key, below in value.items():
                yield from _of(shape.key, key, f"{path}.{key} (its key)")
                yield from _of(shape.value, below, f"{path}.{key}")
        case StringShape():
            yield from _text(shape, str(value), path)
        case _ if shape.type_name in ("integer", "long", "float", "double"):
            yield from _size(shape, value, path)
        case _ if shape.type_name == "blob":
            yield from _size(shape, len(value), path)


def _documented(shape: str, member: str, value: Any, path: str) -> Iterator[str]:
    limits = _DOCUMENTED.get((shape, member))
    if limits is None:
        return
    size = value if isinstance(value, int) else len(value)
    if not limits[0] <= size <= limits[1]:
        yield f"{path}.{member}: {size}, and EC2's reference says {limits[0]} to {limits[1]}"


def _size(shape: Shape, size: float, path: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        yield f"{path}: {size}, and {shape.name} has {least} at least"
    if most is not None and size > most:
        yield f"{path}: {size}, and {shape.name} has {most} at most"


def _text(shape: StringShape, value: str, path: str) -> Iterator[str]:
    yield from _size(shape, len(value), path)
    if shape.enum and value not in shape.enum and shape.name not in _OPEN_ENUMS:
        yield f"{path}: {value!r} is none of {shape.name} ({', '.join(shape.enum[:8])})"
    pattern = shape.metadata.get("pattern")
    if pattern and not compiled(pattern).search(value):
        yield f"{path}: {value[:80]!r} does not match {pattern} of {shape.name}"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A model's pattern for Python. AWS matches the whole value, also where the pattern has no anchors."""
    for java, here in _JAVA_CLASSES.items():
        pattern = pattern.replace(java, here)
    return re.compile(rf"\A(?:{pattern})\Z")
