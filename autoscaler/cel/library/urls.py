"""URLs like k8s.io/apiserver v0.36.3 library/urls.go: net/url of Go 1.26.8 (url.go, gen_encoding_table.go)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from autoscaler.cel.common.values import CelMap, Failure, Unknown, Url, Value
from autoscaler.cel.library.network import is_ipv6

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
# ASCII characters that shouldEscape refuses in a host, and escapes that are not allowed there: those of ASCII but %25.
_BAD_HOST: Final = re.compile(r"[\x00-\x20\x7f\\^`{|}/?#@%]")
_ESCAPED_ASCII: Final = re.compile(r"%(?!25)[0-7]")
# Characters that must not be escaped in a zone: all that are not allowed in a host, except a space.
_BAD_ZONE_BYTES: Final = re.compile(rb"[\x00-\x1f\x7f-\xff\\^`{|}/?#@%]")
_HOST_SAFE: Final = "!$&'()*+,;=:[]<>\""
# Characters of a path that Go does not change; in a path as written, these and []!'()*.
_PATH_SAFE: Final = "$&+,/:;=@"
_VALID_PATH: Final = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%])*", re.ASCII)
_USER_SAFE: Final = "$&+,;="
_FRAGMENT_SAFE: Final = "$&+,/:;=?@!()*"
_VALID_FRAGMENT: Final = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@/?\[\]%])*", re.ASCII)
_MOST_PARAMETERS: Final = 10_000
_NO_TEXT: Final = Unknown(frozenset(), "a part of a URL that is no UTF-8")


class _BadUrlError(ValueError):
    """Text that is not an absolute URI or path."""


def _parse(text: str, *, via_request: bool, fragment: str = "") -> Url:
    """url.parse. Raises _BadUrlError."""
    if any(character < " " or character == "\x7f" for character in text):
        raise _BadUrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise _BadUrlError("empty url")
    shown_fragment = f"#{_shown_fragment(fragment)}" if fragment else ""
    if text == "*":
        return Url(f"*{shown_fragment}", "", "", "", "", "*", ())
    scheme, rest = _scheme(text)
    rest, mark, query = rest.partition("?")
    tail = (f"?{query}" if mark else "") + shown_fragment
    pairs = tuple(_query(query))
    if not rest.startswith("/"):
        if scheme:
            return Url(f"{scheme}:{rest}{tail}", scheme, "", "", "", "", pairs)
        raise _BadUrlError("invalid URI for request")
    user, host, path, authority = None, "", rest, False
    if rest.startswith("//") and (scheme or (not via_request and not rest.startswith("///"))):
        found, slash, path = rest[2:].partition("/")
        user, host = _authority(scheme, found)
        path, authority = slash + path, True
    if _ESCAPE.search(path):
        raise _BadUrlError("invalid URL escape")
    escaped = _escaped_path(path)
    shown = f"{scheme}:" if scheme else ""
    # An empty host is left out if none was written, and in URLs without a scheme.
    if host or user is not None or (scheme and authority and path):
        shown += "//" + (f"{user}@" if user is not None else "") + quote(_bytes(host), safe=_HOST_SAFE)
    hostname, port = _split_host(host)
    return Url(f"{shown}{escaped}{tail}", scheme, host, hostname, port, escaped, pairs)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    if found and text[found.end() : found.end() + 1] == ":":
        return found[0].lower(), text[found.end() + 1 :]
    if text.startswith(":"):
        raise _BadUrlError("missing protocol scheme")
    return "", text


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    """The user, as printed again, or None; and the host."""
    written, at, host = authority.rpartition("@")
    found = _host(scheme, host)
    if not at:
        return None, found
    if not _USER.fullmatch(written):
        raise _BadUrlError("net/url: invalid userinfo")
    if _ESCAPE.search(written):
        raise _BadUrlError("invalid URL escape")
    name, colon, password = (quote(unquote_to_bytes(part), safe=_USER_SAFE) for part in written.partition(":"))
    return f"{name}:{password}" if colon else name, found


def _host(scheme: str, host: str) -> str:
    """parseHost: the host without escapes; bytes that are no UTF-8 are surrogates."""
    bracket = host.rfind("[")
    if bracket > 0:
        raise _BadUrlError("invalid IP-literal")
    if bracket == 0:
        return _ip_literal(host)
    # More than one colon is an error only in http and https (go.dev/issue/75223).
    colon = host.find(":") if scheme in ("http", "https") else host.rfind(":")
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        raise _BadUrlError(f'invalid port "{host[colon:]}" after host')
    return _unescaped_host(host)


def _ip_literal(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise _BadUrlError("missing ']' in host")
    port = host[end + 1 :]
    if not _PORT.fullmatch(port):
        raise _BadUrlError(f'invalid port "{port}" after host')
    name, mark, zone = host[1:end].partition("%25")
    address = _unescaped_host(name)
    if mark:
        address += _unescaped_zone(mark + zone)
    if not _is_ipv6(address):
        raise _BadUrlError("invalid host")
    return f"[{address}]{port}"


def _unescaped_host(host: str) -> str:
    if _ESCAPE.search(host) or _ESCAPED_ASCII.search(host):
        raise _BadUrlError("invalid URL escape")
    if _BAD_HOST.search(re.sub("%..", "", host)):
        raise _BadUrlError("invalid character in host name")
    return unquote_to_bytes(host).decode("utf-8", "surrogateescape")


def _unescaped_zone(zone: str) -> str:
    if _ESCAPE.search(zone):
        raise _BadUrlError("invalid URL escape")
    escapes = [found for found in re.findall("%..", zone) if found != "%25"]
    if any(_BAD_ZONE_BYTES.search(unquote_to_bytes(found)) for found in escapes):
        raise _BadUrlError("invalid URL escape")
    if _BAD_HOST.search(re.sub("%..", "", zone)):
        raise _BadUrlError("invalid character in host name")
    return unquote_to_bytes(zone).decode("utf-8", "surrogateescape")


def _is_ipv6(text: str) -> bool:
    """True if netip.ParseAddr reads an IPv6 address, with a zone that is not empty if any."""
    address, percent, zone = text.partition("%")
    return is_ipv6(address) and bool(zone or not percent)


def _split_host(host: str) -> tuple[str, str]:
    """url.Hostname and url.Port."""
    name, colon, port = host.rpartition(":")
    if not colon or not _PORT.fullmatch(colon + port):
        name, port = host, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def _escaped_path(path: str) -> str:
    """The written path if it is a valid encoding, else Go's encoding."""
    if _VALID_PATH.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe=_PATH_SAFE)


def _shown_fragment(fragment: str) -> str:
    if _ESCAPE.search(fragment):
        raise _BadUrlError("invalid URL escape")
    if _VALID_FRAGMENT.fullmatch(fragment):
        return fragment
    return quote(unquote_to_bytes(fragment), safe=_FRAGMENT_SAFE)


def _query(query: str) -> list[tuple[str, str]]:
    """url.ParseQuery, which drops pairs that it cannot read, and everything if there are too many."""
    if query.count("&") >= _MOST_PARAMETERS:
        return []
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
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "surrogateescape")


def parse_url(text: str) -> Value:
    """The Url, or a Failure. Upstream checks the whole text first and splits off the fragment afterwards."""
    try:
        _parse(text, via_request=True)
        before, _, fragment = text.partition("#")
        return _parse(before, via_request=False, fragment=fragment)
    except _BadUrlError as error:
        return Failure(f"URL parse error during conversion from string: {error}")


def request_uri_problem(text: str) -> str | None:
    """The reason why url.ParseRequestURI refuses the text, or None. isURL() and the format `uri` check nothing else."""
    try:
        _parse(text, via_request=True)
    except _BadUrlError as error:
        return str(error)
    return None


def _known(text: str) -> Value:
    """The text, or unknown if it is invalid: upstream has texts of any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _NO_TEXT
    return text


def _get_query(url: Url) -> Value:
    if any(_known(part) is _NO_TEXT for pair in url.query for part in pair):
        return _NO_TEXT
    entries: dict[Value, Value] = {}
    for key, value in url.query:
        entries.setdefault(key, []).append(value)
    return CelMap(entries)


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_to_url": parse_url,
    "is_url_string": lambda text: request_uri_problem(text) is None,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: _known(url.host),
    "url_get_hostname": lambda url: _known(url.hostname),
    "url_get_port": lambda url: _known(url.port),
    "url_get_escaped_path": lambda url: url.escaped_path,
    "url_get_query": _get_query,
}
