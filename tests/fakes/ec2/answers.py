"""From an operation's answer to bytes, by the service model: the counterpart of requests.py.

An answer is a dict with the names of the SDK. A name that the model does not have raises MisspeltAnswerError, so that
the fake cannot answer what the service never would; a member that is None is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape

from botocore.model import OperationModel, ServiceModel, Shape

from tests.fakes.ec2.errors import ApiError, MisspeltAnswerError


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What goes over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def render(model: OperationModel, answer: Mapping[str, Any], request_id: str) -> HttpResponse:
    """An operation's success."""
    protocol = model.service_model.metadata["protocol"]
    if protocol in ("ec2", "query"):
        return _xml(200, "".join(_document(model, answer, request_id, protocol)), request_id)
    shape = model.output_shape
    return _json(model.service_model, 200, {} if shape is None else _to_json(shape, answer, model.name), request_id)


def render_error(service: ServiceModel | None, error: ApiError, request_id: str) -> HttpResponse:
    """An error, in the dialect of the service."""
    protocol = "ec2" if service is None else service.metadata["protocol"]
    code, message = escape(error.code), escape(error.message)
    if protocol == "ec2":
        inside = f"<Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        return _xml(error.status, f"<Response>{inside}<RequestID>{request_id}</RequestID></Response>", request_id)
    if protocol == "query":
        kind = "Receiver" if error.status >= 500 else "Sender"
        inside = f"<Error><Type>{kind}</Type><Code>{code}</Code><Message>{message}</Message></Error>"
        text = f"<ErrorResponse>{inside}<RequestId>{request_id}</RequestId></ErrorResponse>"
        return _xml(error.status, text, request_id)
    answer = _json(service, error.status, {"__type": error.code, "message": error.message}, request_id, error.code)
    if error.code not in _LEGACY_CODES:
        return answer
    headers = {**answer.headers, "x-amzn-query-error": f"{_LEGACY_CODES[error.code]};Sender"}
    return HttpResponse(answer.status, headers, answer.body)


# Codes that SQS had before it spoke JSON, and that SDKs still show.
_LEGACY_CODES: Mapping[str, str] = {"QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue"}


def _xml(status: int, text: str, request_id: str) -> HttpResponse:
    headers = {"content-type": "text/xml;charset=UTF-8", "x-amzn-requestid": request_id}
    return HttpResponse(status, headers, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode())


def _json(service: ServiceModel | None, status: int, value: Any, request_id: str, error_code: str = "") -> HttpResponse:
    version = "1.1" if service is None else service.metadata.get("jsonVersion", "1.1")
    headers = {"content-type": f"application/x-amz-json-{version}", "x-amzn-requestid": request_id}
    if error_code:
        headers["x-amzn-errortype"] = error_code
    return HttpResponse(status, headers, json.dumps(value).encode())


def _document(model: OperationModel, answer: Mapping[str, Any], request_id: str, protocol: str) -> Iterator[str]:
    shape, name = model.output_shape, model.name
    yield f"<{name}Response>"
    if protocol == "ec2":
        yield f"<requestId>{request_id}</requestId>"
    wrapper = shape.serialization.get("resultWrapper") if shape is not None else None
    if wrapper:
        yield f"<{wrapper}>"
    if shape is not None:
        yield from _members(shape, answer, name)
    elif answer:
        raise MisspeltAnswerError(f"{name} has no output, found {answer}")
    if wrapper:
        yield f"</{wrapper}>"
    if protocol == "query":
        yield f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
    yield f"</{name}Response>"


def _members(shape: Shape, value: Mapping[str, Any], where: str) -> Iterator[str]:
    members = shape.members
    for name, item in value.items():
        if name not in members:
            raise MisspeltAnswerError(f"{where} has no member {name}; it has {sorted(members)}")
        if item is not None:
            member = members[name]
            yield from _element(member, member.serialization.get("name", name), item, f"{where}.{name}")


def _element(shape: Shape, tag: str, value: Any, where: str) -> Iterator[str]:
    kind = shape.type_name
    if kind == "list" and shape.serialization.get("flattened"):
        for item in value:
            yield from _element(shape.member, shape.member.serialization.get("name", tag), item, where)
        return
    yield f"<{tag}>"
    if kind == "structure":
        yield from _members(shape, value, where)
    elif kind == "list":
        for item in value:
            yield from _element(shape.member, shape.member.serialization.get("name", "member"), item, where)
    elif kind == "map":
        for key, item in value.items():
            yield f"<entry><key>{escape(key)}</key>"
            yield from _element(shape.value, "value", item, where)
            yield "</entry>"
    else:
        yield escape(_text(shape, value, where))
    yield f"</{tag}>"


# What Python value a scalar of the model is.
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "character": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "boolean": (bool,),
    "timestamp": (datetime,),
}


def _checked(shape: Shape, value: Any, where: str) -> Any:
    if not isinstance(value, _SCALARS[shape.type_name]):
        raise MisspeltAnswerError(f"{where} is a {shape.type_name}, found {value!r}")
    allowed = getattr(shape, "enum", None)
    if allowed and value not in allowed:
        raise MisspeltAnswerError(f"{where} is one of {allowed}, found {value!r}")
    return value


def _text(shape: Shape, value: Any, where: str) -> str:
    _checked(shape, value, where)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return str(value)


def _to_json(shape: Shape, value: Any, where: str) -> Any:
    kind = shape.type_name
    if kind == "structure":
        members = shape.members
        unknown = sorted(value.keys() - members.keys())
        if unknown:
            raise MisspeltAnswerError(f"{where} has no member {unknown[0]}; it has {sorted(members)}")
        return {
            members[name].serialization.get("name", name): _to_json(members[name], item, f"{where}.{name}")
            for name, item in value.items()
            if item is not None
        }
    if kind == "list":
        return [_to_json(shape.member, item, where) for item in value]
    if kind == "map":
        return {key: _to_json(shape.value, item, where) for key, item in value.items()}
    _checked(shape, value, where)
    return value.timestamp() if isinstance(value, datetime) else value
