"""IP addresses and CIDRs (Go's net/netip; k8s.io/apiserver v0.36.3 library/{ip,cidr}.go)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.cel.common.values import Address, Failure, Prefix, Value

_BITS: Final = {4: 32, 6: 128}
_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


def parse_address(text: str) -> Address | None:
    """An address without zone, not IPv4-mapped; None for anything else."""
    address = _address(text)
    if address is None or (address.family == 6 and address.bits >> 32 == 0xFFFF):
        return None
    return address


def _address(text: str) -> Address | None:
    if "%" in text or not text.isascii():
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return Address(found.version, int(found))


def is_ipv6(text: str) -> bool:
    """True if the text is an IPv6 address without zone, IPv4-mapped ones included."""
    address = _address(text)
    return address is not None and address.family == 6


def parse_prefix(text: str) -> Prefix | None:
    """An address, a slash and a length without leading zeros; None for anything else."""
    head, slash, tail = text.rpartition("/")
    address = parse_address(head)
    if not slash or address is None or not _LENGTH.fullmatch(tail) or int(tail) > _BITS[address.family]:
        return None
    return Prefix(address, int(tail))


def address_text(address: Address) -> str:
    """Canonical text."""
    if address.family == 4:
        return str(ipaddress.IPv4Address(address.bits))
    return str(ipaddress.IPv6Address(address.bits))


def prefix_text(prefix: Prefix) -> str:
    """Canonical text, host bits kept."""
    return f"{address_text(prefix.address)}/{prefix.length}"


def _ip(text: str) -> Value:
    return parse_address(text) or Failure(f"IP Address {text!r} parse error during conversion from string")


def _cidr(text: str) -> Value:
    return parse_prefix(text) or Failure(f"network address parse error during conversion from string: {text!r}")


def _is_canonical(text: str) -> Value:
    address = parse_address(text)
    if address is None:
        return Failure(f"IP Address {text!r} parse error during conversion from string")
    return address_text(address) == text


def _in_prefix(address: Address, base: str) -> bool:
    network = ipaddress.ip_network(base)
    shift = network.max_prefixlen - network.prefixlen
    return address.family == network.version and address.bits >> shift == int(network.network_address) >> shift


def _is_loopback(address: Address) -> bool:
    return _in_prefix(address, "127.0.0.0/8") or _in_prefix(address, "::1/128")


def _is_link_local_multicast(address: Address) -> bool:
    if address.family == 4:
        return _in_prefix(address, "224.0.0.0/24")
    return address.bits >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(address: Address) -> bool:
    return _in_prefix(address, "169.254.0.0/16") or _in_prefix(address, "fe80::/10")


def _is_global_unicast(address: Address) -> bool:
    if address.bits == 0 or _is_loopback(address) or _is_link_local_unicast(address):
        return False
    if address.family == 4:
        return address.bits != 0xFFFFFFFF and not _in_prefix(address, "224.0.0.0/4")
    return not _in_prefix(address, "ff00::/8")


def _contains(prefix: Prefix, address: Address) -> bool:
    shift = _BITS[prefix.address.family] - prefix.length
    return prefix.address.family == address.family and prefix.address.bits >> shift == address.bits >> shift


def _contains_text(prefix: Prefix, text: str) -> Value:
    address = _ip(text)
    return _contains(prefix, address) if type(address) is Address else address


def _contains_prefix(prefix: Prefix, other: Prefix) -> bool:
    return prefix.length <= other.length and _contains(prefix, other.address)


def _contains_prefix_text(prefix: Prefix, text: str) -> Value:
    other = _cidr(text)
    return _contains_prefix(prefix, other) if type(other) is Prefix else other


def _masked(prefix: Prefix) -> Prefix:
    shift = _BITS[prefix.address.family] - prefix.length
    return Prefix(Address(prefix.address.family, prefix.address.bits >> shift << shift), prefix.length)


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_to_ip": _ip,
    "is_ip": lambda text: parse_address(text) is not None,
    "ip_is_canonical": _is_canonical,
    "ip_family": lambda address: address.family,
    "ip_is_unspecified": lambda address: address.bits == 0,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local_unicast,
    "ip_is_global_unicast": _is_global_unicast,
    "string_to_cidr": _cidr,
    "is_cidr": lambda text: parse_prefix(text) is not None,
    "cidr_contains_ip_string": _contains_text,
    "cidr_contains_ip_ip": _contains,
    "cidr_contains_cidr_string": _contains_prefix_text,
    "cidr_contains_cidr": _contains_prefix,
    "cidr_ip": lambda prefix: prefix.address,
    "cidr_prefix_length": lambda prefix: prefix.length,
    "cidr_masked": _masked,
}
