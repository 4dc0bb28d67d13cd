"""From an HTTP request to an operation with typed parameters, by the service models that the SDK ships.

Three encodings: forms (protocols ec2 and query), JSON bodies with a target header (json), JSON with paths (rest-json).
A request that does not fit its model is refused, as AWS does: unknown and missing parameters, wrong types and values.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import botocore.session
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.utils import parse_timestamp

from tests.fakes.ec2.errors import ApiError, unknown_to_the_fake

Params = dict[str, Any]
# The credential scope of a signature names region and service: Credential=<key>/<day>/<region>/<service>/aws4_request.
_SCOPE = re.compile(r"Credential=[^/]+/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
# Services that sign with another name than the SDK calls them by.
_SIGNED_AS = {"servicequotas": "service-quotas"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What came over the wire. `headers` have lower-case names."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """A call: the operation's model and its parameters, as the caller gave them to the SDK."""

    model: OperationModel
    region: str
    params: Params

    @property
    def operation(self) -> str:
        return str(self.model.name)

    @property
    def service(self) -> str:
        return str(self.model.service_model.service_name)


@cache
def service_model(service: str) -> ServiceModel:
    """The model of a service by the name the SDK uses; read once a process, because EC2's has ten megabytes."""
    return botocore.session.get_session().get_service_model(service)


def understand(http: HttpRequest) -> Request:
    """The call that a request is. Raises ApiError for one that does not fit the service's model."""
    scope = _SCOPE.search(http.headers.get("authorization", ""))
    if scope is None:
        raise ApiError("MissingAuthenticationToken", "Request is missing Authentication Token", status=403)
    service = service_model(_SIGNED_AS.get(scope["service"], scope["service"]))
    protocol = str(service.metadata["protocol"])
    if protocol in ("ec2", "query"):
        model, params = _form(http, service, protocol)
    elif protocol == "json":
        model, params = _targeted(http, service)
    elif protocol == "rest-json":
        model, params = _routed(http, service)
    else:
        raise unknown_to_the_fake(f"the protocol {protocol}")
    return Request(model, scope["region"], params)


# --- forms ---------------------------------------------------------------------------------------------------------


def _form(http: HttpRequest, service: ServiceModel, protocol: str) -> tuple[OperationModel, Params]:
    fields = dict(parse_qsl(http.body.decode(), keep_blank_values=True))
    action = fields.pop("Action", "")
    if action not in service.operation_names:
        raise ApiError("InvalidAction", f"The action {action} is not valid for this web service.")
    if fields.pop("Version", "") != service.api_version:
        raise ApiError("NoSuchVersion", "The API version that was requested is not known.")
    model = service.operation_model(action)
    tree: dict[str, Any] = {}
    for key, value in fields.items():
        *path, last = key.split(".")
        branch = tree
        for step in path:
            branch = branch.setdefault(step, {})
        branch[last] = value
    return model, {} if model.input_shape is None else _Form(protocol).structure(model.input_shape, tree, "")


class _Form:
    """Reads one of the two form dialects. In both, `a.b.1.c` is c of the first element of the list b of a."""

    def __init__(self, protocol: str) -> None:
        self._ec2 = protocol == "ec2"

    def structure(self, shape: Shape, tree: Mapping[str, Any], where: str) -> Params:
        names = {self._name(member, name): name for name, member in shape.members.items()}
        unknown = sorted(tree.keys() - names.keys())
        if unknown:
            raise ApiError("UnknownParameter", f"The parameter {where}{unknown[0]} is not recognized")
        _require(shape, {names[key] for key in tree}, where)
        return {names[key]: self._value(shape.members[names[key]], item, f"{where}{key}") for key, item in tree.items()}

    def _name(self, member: Shape, name: str) -> str:
        found = member.serialization
        if not self._ec2:
            return str(found.get("name", name))
        if "queryName" in found:
            return str(found["queryName"])
        given = str(found.get("name", name))
        return given[0].upper() + given[1:]

    def _value(self, shape: Shape, node: Any, where: str) -> Any:
        if shape.type_name == "structure":
            return self.structure(shape, _branch(node, where), f"{where}.")
        if shape.type_name == "list":
            return self._list(shape, node, where)
        if shape.type_name == "map":
            return self._map(shape, _branch(node, where), where)
        if not isinstance(node, str):
            raise ApiError("InvalidParameterValue", f"The parameter {where} has no members")
        return _scalar(shape, node, where)

    def _list(self, shape: Shape, node: Any, where: str) -> list[Any]:
        if node == "":
            return []  # the query protocol writes empty lists
        items = _branch(node, where)
        if not self._ec2 and not shape.serialization.get("flattened"):
            items = _branch(items.get(shape.member.serialization.get("name", "member"), {}), where)
        if not all(index.isdigit() for index in items):
            raise ApiError("InvalidParameterValue", f"The list {where} has an index that is no number")
        ordered = sorted(items.items(), key=lambda item: int(item[0]))
        return [self._value(shape.member, item, f"{where}.{index}") for index, item in ordered]

    def _map(self, shape: Shape, node: Mapping[str, Any], where: str) -> Params:
        entries = node if shape.serialization.get("flattened") else _branch(node.get("entry", {}), where)
        return {
            entry[shape.key.serialization.get("name", "key")]: self._value(
                shape.value, entry[shape.value.serialization.get("name", "value")], where
            )
            for entry in entries.values()
        }


def _branch(node: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(node, Mapping):
        raise ApiError("InvalidParameterValue", f"The parameter {where} has members or elements")
    return node


def _require(shape: Shape, given: set[str], where: str) -> None:
    missing = sorted(set(shape.required_members) - given)
    if missing:
        raise ApiError("MissingParameter", f"The request must contain the parameter {where}{missing[0]}")


def _scalar(shape: Shape, text: str, where: str) -> Any:
    kind = shape.type_name
    try:
        if kind in ("integer", "long"):
            return int(text)
        if kind in ("float", "double"):
            return float(text)
        if kind == "boolean":
            return {"true": True, "false": False}[text]
        if kind == "timestamp":
            return parse_timestamp(text).astimezone(UTC)
        if kind == "blob":
            return base64.b64decode(text)
    except (KeyError, ValueError) as error:
        raise ApiError("InvalidParameterValue", f"Value ({text}) for parameter {where} is invalid.") from error
    return _known(shape, text, where)


def _known(shape: Shape, text: str, where: str) -> str:
    allowed = getattr(shape, "enum", None)
    if allowed and text not in allowed:
        raise ApiError("InvalidParameterValue", f"Value ({text}) for parameter {where} is invalid.")
    return text


# --- JSON ----------------------------------------------------------------------------------------------------------


def _targeted(http: HttpRequest, service: ServiceModel) -> tuple[OperationModel, Params]:
    prefix, _, action = http.headers.get("x-amz-target", "").partition(".")
    if prefix != service.metadata["targetPrefix"] or action not in service.operation_names:
        raise ApiError("UnknownOperationException", f"no operation {prefix}.{action}")
    model = service.operation_model(action)
    body = json.loads(http.body or b"{}")
    return model, {} if model.input_shape is None else _from_json(model.input_shape, body, action)


def _routed(http: HttpRequest, service: ServiceModel) -> tuple[OperationModel, Params]:
    url = urlsplit(http.url)
    for action in service.operation_names:
        model = service.operation_model(action)
        template = model.http["requestUri"].partition("?")[0]
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
        found = re.fullmatch(pattern, url.path)
        if found is None or model.http["method"] != http.method:
            continue
        return model, _located(model, found.groupdict(), dict(parse_qsl(url.query)), json.loads(http.body or b"{}"))
    raise ApiError("NotFoundException", f"no operation {http.method} {url.path}", status=404)


def _located(model: OperationModel, path: Params, query: Params, body: Params) -> Params:
    """The parameters of a rest-json call: members know whether they travel in path, query or body."""
    shape, params = model.input_shape, {}
    if shape is None:
        return params
    for name, member in shape.members.items():
        wire = member.serialization.get("name", name)
        location = member.serialization.get("location")
        if location == "uri":
            params[name] = unquote(path[wire])
        elif location == "querystring" and wire in query:
            params[name] = _scalar(member, query[wire], name)
        elif location is None and wire in body:
            params[name] = _from_json(member, body.pop(wire), name)
    if body:
        raise ApiError("InvalidParameterException", f"unknown parameter {sorted(body)[0]}")
    _require(shape, set(params), "")
    return params


def _from_json(shape: Shape, value: Any, where: str) -> Any:
    kind = shape.type_name
    if kind == "structure":
        names = {member.serialization.get("name", name): name for name, member in shape.members.items()}
        unknown = sorted(set(value) - names.keys())
        if unknown:
            raise ApiError("SerializationException", f"unknown parameter {where}.{unknown[0]}")
        _require(shape, {names[key] for key in value}, f"{where}.")
        return {
            names[key]: _from_json(shape.members[names[key]], item, f"{where}.{key}") for key, item in value.items()
        }
    if kind == "list":
        return [_from_json(shape.member, item, where) for item in value]
    if kind == "map":
        return {key: _from_json(shape.value, item, where) for key, item in value.items()}
    if kind == "timestamp":
        return datetime.fromtimestamp(value, UTC)
    return _known(shape, value, where) if kind == "string" else value
