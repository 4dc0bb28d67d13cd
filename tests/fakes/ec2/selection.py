"""Filters and pages, as EC2's Describe calls have them.

A filter's name is looked up in a table of the resource, its values may hold * and ?, and values of one filter are
alternatives while filters add up. Pages follow the order of the items' keys; a token names the last item shown, so
pages neither repeat nor miss anything when items come and go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from tests.fakes.ec2.errors import ApiError

Item = TypeVar("Item")
# The values of an item that a filter compares with.
Field = Callable[[Item], Iterable[str]]
_LONGEST = 1000


def filtered(
    items: Iterable[Item],
    filters: Iterable[Mapping[str, Any]],
    fields: Mapping[str, Field[Item]],
    tags: Callable[[Item], Mapping[str, str]],
) -> list[Item]:
    """The items that pass every filter. Raises InvalidParameterValue for a filter that the resource does not have."""
    found = list(items)
    for chosen in filters:
        read, patterns = _reader(chosen["Name"], fields, tags), [_pattern(value) for value in chosen.get("Values", ())]
        found = [item for item in found if any(p.fullmatch(v) for v in read(item) for p in patterns)]
    return found


def _reader(
    name: str, fields: Mapping[str, Field[Item]], tags: Callable[[Item], Mapping[str, str]]
) -> Callable[[Item], Iterable[str]]:
    if name == "tag-key":
        return lambda item: tags(item).keys()
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return lambda item: [tags(item)[key]] if key in tags(item) else []
    if name not in fields:
        raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return fields[name]


@cache
def _pattern(value: str) -> re.Pattern[str]:
    return re.compile(re.escape(value).replace(r"\*", ".*").replace(r"\?", "."))


def paged(
    items: Sequence[Item], params: Mapping[str, Any], *, key: Callable[[Item], str], limit: int = _LONGEST
) -> tuple[list[Item], str | None]:
    """A page of the items, which are in the order of `key`, and the token of the next one."""
    wanted = params.get("MaxResults", limit)
    if not 1 <= wanted <= _LONGEST:
        raise ApiError("InvalidParameterValue", f"Value ( {wanted} ) for parameter maxResults is invalid.")
    size = min(wanted, limit)
    if params.get("NextToken"):
        last = _decoded(params["NextToken"])
        items = [item for item in items if key(item) > last]
    page = list(items[:size])
    more = size < len(items)
    return page, base64.urlsafe_b64encode(key(page[-1]).encode()).decode() if more else None


def _decoded(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token).decode()
    except ValueError as error:
        raise ApiError("InvalidNextToken", "The token is not valid.") from error


def tag_set(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as the API lists them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tags_for(kind: str, specifications: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The tags that a request's TagSpecifications give to a kind of resource."""
    found: dict[str, str] = {}
    for specification in specifications:
        if specification.get("ResourceType") == kind:
            found.update({tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", ())})
    if any(key.startswith("aws:") for key in found):
        raise ApiError("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
    return found
