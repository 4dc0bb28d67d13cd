"""URLs as Go's net/url.ParseRequestURI reads them (k8s.io/apiserver v0.36.3 library/urls.go)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from autoscaler.cel.values import CelMap, Failure, Url, Value

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_BAD_HOST: Final = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}/?#@]")
# Characters of a path that Go leaves as they are.
_PATH_SAFE: Final = "$&+,/:;=@!~*'()"
_VALID_PATH: Final = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]]|%[0-9a-fA-F]{2})*", re.ASCII)


class _BadUrlError(ValueError):
    """Text that is not an absolute URI or path."""


def _parse(text: str) -> Url:
    if any(character < " " or character == "\x7f" for character in text):
        raise _BadUrlError("invalid control character in URL")
    if not text:
        raise _BadUrlError("empty url")
    scheme, rest = _scheme(text)
    # "?" at the very end with nothing before it is a forced empty query.
    rest, mark, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(text, scheme, "", "", "", "", tuple(_query(query)))
        raise _BadUrlError("invalid URI for request")
    authority, path = "", rest
    if (scheme and rest.startswith("//")) or (not scheme and rest.startswith("//") and not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        path = slash + tail
    user, at, host = authority.rpartition("@")
    if at and (not _USER.fullmatch(user) or _ESCAPE.search(user)):
        raise _BadUrlError("net/url: invalid userinfo")
    host = _host(host)
    if _ESCAPE.search(path):
        raise _BadUrlError("invalid URL escape")
    hostname, port = _split_host(host)
    escaped = _escaped_path(path)
    shown_query = f"?{query}" if mark else ""
    shown_user = f"{user}@" if at else ""
    shown = f"{scheme}:" if scheme else ""
    if scheme or authority:
        shown += f"//{shown_user}{host}" if authority or rest.startswith("//") else ""
    return Url(shown + escaped + shown_query, scheme, host, hostname, port, escaped, tuple(_query(query)))


def _scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    if found and text[found.end() : found.end() + 1] == ":":
        return found[0].lower(), text[found.end() + 1 :]
    if text.startswith(":"):
        raise _BadUrlError("missing protocol scheme")
    return "", text


def _host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _BadUrlError("missing ']' in host")
        if not _PORT.fullmatch(host[end + 1 :]):
            raise _BadUrlError("invalid port after host")
        zone = host.find("%25")
        checked = host[:zone] if 0 <= zone < end else host
        if _ESCAPE.search(host) or "%" in checked:
            raise _BadUrlError("invalid URL escape in host")
        return unquote_to_bytes(host).decode("utf-8", "replace") if "%" in host else host
    _, colon, port = host.rpartition(":")
    if colon and not _PORT.fullmatch(colon + port):
        raise _BadUrlError("invalid port after host")
    if _ESCAPE.search(host) or _BAD_HOST.search(host):
        raise _BadUrlError("invalid character in host name")
    if re.search(r"%[0-7]", host):  # only bytes beyond ASCII may be escaped in a host
        raise _BadUrlError("invalid URL escape in host")
    return unquote_to_bytes(host).decode("utf-8", "replace") if "%" in host else host


def _split_host(host: str) -> tuple[str, str]:
    """url.Hostname and url.Port."""
    if host.startswith("["):
        end = host.rfind("]")
        return host[1:end], host[end + 2 :] if host[end + 1 : end + 2] == ":" else ""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon else (host, "")


def _escaped_path(path: str) -> str:
    """The written path where it is a valid encoding, else the one Go makes."""
    if _VALID_PATH.fullmatch(path):
        return path
    return "*" if path == "*" else quote(unquote_to_bytes(path), safe=_PATH_SAFE)


def _query(query: str) -> list[tuple[str, str]]:
    """url.ParseQuery, which drops pairs it cannot read."""
    pairs = []
    for part in query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if _ESCAPE.search(key) or _ESCAPE.search(value):
            continue
        pairs.append((_unescaped(key), _unescaped(value)))
    return pairs


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def parse_url(text: str) -> Value:
    """The Url, or a Failure. Upstream checks the whole text first and splits off the fragment afterwards."""
    try:
        whole = _parse(text)
        before, mark, fragment = text.partition("#")
        if not mark:
            return whole
        if _ESCAPE.search(fragment):
            raise _BadUrlError("invalid URL escape")
        url = _parse(before)
        return replace(url, text=f"{url.text}#{fragment}" if fragment else url.text)
    except _BadUrlError as error:
        return Failure(f"URL parse error during conversion from string: {error}")


def _get_query(url: Url) -> CelMap:
    entries: dict[Value, Value] = {}
    for key, value in url.query:
        entries.setdefault(key, []).append(value)
    return CelMap(entries)


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_to_url": parse_url,
    "is_url_string": lambda text: type(parse_url(text)) is Url,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": lambda url: url.hostname,
    "url_get_port": lambda url: url.port,
    "url_get_escaped_path": lambda url: url.escaped_path,
    "url_get_query": _get_query,
}
