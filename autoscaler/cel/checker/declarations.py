"""The declared functions: every overload's name, arguments and result, in upstream's order.

Sources: cel-go v0.26.0 and v0.29.2 common/stdlib/standard.go; cel-go v0.26.0 cel/library.go,
ext/{strings,lists,sets,comprehensions}.go; k8s.io/apiserver v0.36.3 pkg/cel/library; k8s.io/dynamic-resource-allocation
v0.36.3 cel/compile.go. The tables are read once, when the first expression is checked. One line has one overload:
`function: [.]id(arguments) -> result`, where a dot marks a method (its first argument is the receiver), capital letters
are type parameters and `<T in ...>` repeats the line for each type.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from autoscaler.cel.common import types
from autoscaler.cel.common.types import Type
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function."""

    id: str
    arguments: tuple[Type, ...]
    result: Type
    parameters: tuple[str, ...]
    method: bool


_ORDERED: Final = (
    "bool int int,double int,uint uint uint,double uint,int double double,int double,uint string bytes ts dur"
)

_STANDARD: Final = """
_?_:_: conditional(bool, A, A) -> A
_&&_: logical_and(bool, bool) -> bool
_||_: logical_or(bool, bool) -> bool
!_: logical_not(bool) -> bool
@not_strictly_false: not_strictly_false(bool) -> bool
_==_: equals(A, A) -> bool
_!=_: not_equals(A, A) -> bool
_+_: add_bytes(bytes, bytes) -> bytes
_+_: add_double(double, double) -> double
_+_: add_duration_duration(dur, dur) -> dur
_+_: add_duration_timestamp(dur, ts) -> ts
_+_: add_timestamp_duration(ts, dur) -> ts
_+_: add_int64(int, int) -> int
_+_: add_list(list<A>, list<A>) -> list<A>
_+_: add_string(string, string) -> string
_+_: add_uint64(uint, uint) -> uint
_/_: divide_T(T, T) -> T <T in double int uint>
_%_: modulo_T(T, T) -> T <T in int uint>
_*_: multiply_T(T, T) -> T <T in double int uint>
-_: negate_T(T) -> T <T in double int>
_-_: subtract_double(double, double) -> double
_-_: subtract_duration_duration(dur, dur) -> dur
_-_: subtract_int64(int, int) -> int
_-_: subtract_timestamp_duration(ts, dur) -> ts
_-_: subtract_timestamp_timestamp(ts, ts) -> dur
_-_: subtract_uint64(uint, uint) -> uint
_[_]: index_list(list<A>, int) -> A
_[_]: index_map(map<A,B>, A) -> B
_[_]: optional_list_index_int(optional<list<A>>, int) -> optional<A>
_[_]: optional_map_index_value(optional<map<A,B>>, A) -> optional<B>
@in: in_list(A, list<A>) -> bool
@in: in_map(A, map<A,B>) -> bool
size: size_T(T) -> int <T in bytes list<A> map<A,B> string>
size: .T_size(T) -> int <T in bytes list<A> map<A,B> string>
type: type(A) -> type<A>
bool: T_to_bool(T) -> bool <T in bool string>
bytes: T_to_bytes(T) -> bytes <T in bytes string>
double: T_to_double(T) -> double <T in double int string uint>
duration: T_to_duration(T) -> dur <T in dur string>
dyn: to_dyn(A) -> dyn
int: T_to_int(T) -> int <T in int double dur string ts uint>
string: T_to_string(T) -> string <T in string bool bytes double dur int ts uint ip cidr>
timestamp: T_to_timestamp(T) -> ts <T in ts int string>
uint: T_to_uint(T) -> uint <T in uint double int string>
contains: .contains_string(string, string) -> bool
endsWith: .ends_with_string(string, string) -> bool
startsWith: .starts_with_string(string, string) -> bool
matches: matches(string, string) -> bool
matches: .matches_string(string, string) -> bool
getFullYear: .timestamp_to_year(ts) -> int
getFullYear: .timestamp_to_year_with_tz(ts, string) -> int
getMonth: .timestamp_to_month(ts) -> int
getMonth: .timestamp_to_month_with_tz(ts, string) -> int
getDayOfYear: .timestamp_to_day_of_year(ts) -> int
getDayOfYear: .timestamp_to_day_of_year_with_tz(ts, string) -> int
getDayOfMonth: .timestamp_to_day_of_month(ts) -> int
getDayOfMonth: .timestamp_to_day_of_month_with_tz(ts, string) -> int
getDate: .timestamp_to_day_of_month_1_based(ts) -> int
getDate: .timestamp_to_day_of_month_1_based_with_tz(ts, string) -> int
getDayOfWeek: .timestamp_to_day_of_week(ts) -> int
getDayOfWeek: .timestamp_to_day_of_week_with_tz(ts, string) -> int
getHours: .timestamp_to_hours(ts) -> int
getHours: .timestamp_to_hours_with_tz(ts, string) -> int
getHours: .duration_to_hours(dur) -> int
getMinutes: .timestamp_to_minutes(ts) -> int
getMinutes: .timestamp_to_minutes_with_tz(ts, string) -> int
getMinutes: .duration_to_minutes(dur) -> int
getSeconds: .timestamp_to_seconds(ts) -> int
getSeconds: .timestamp_to_seconds_with_tz(ts, string) -> int
getSeconds: .duration_to_seconds(dur) -> int
getMilliseconds: .timestamp_to_milliseconds(ts) -> int
getMilliseconds: .timestamp_to_milliseconds_with_tz(ts, string) -> int
getMilliseconds: .duration_to_milliseconds(dur) -> int
"""

# Declared before cel-go 0.29, although no integer was ever converted.
_INT_DURATION: Final = "duration: int_to_duration(int) -> dur"

_OPTIONAL: Final = """
optional.of: optional_of(A) -> optional<A>
optional.ofNonZeroValue: optional_ofNonZeroValue(A) -> optional<A>
optional.none: optional_none() -> optional<A>
value: .optional_value(optional<A>) -> A
hasValue: .optional_hasValue(optional<A>) -> bool
or: .optional_or_optional(optional<A>, optional<A>) -> optional<A>
orValue: .optional_orValue_value(optional<A>, A) -> A
_?._: select_optional_field(dyn, string) -> optional<A>
_[?_]: list_optindex_optional_int(list<A>, int) -> optional<A>
_[?_]: optional_list_optindex_optional_int(optional<list<A>>, int) -> optional<A>
_[?_]: map_optindex_optional_value(map<A,B>, A) -> optional<B>
_[?_]: optional_map_optindex_optional_value(optional<map<A,B>>, A) -> optional<B>
last: .list_last(list<A>) -> optional<A>
first: .list_first(list<A>) -> optional<A>
optional.unwrap: optional_unwrap(list<optional<A>>) -> list<A>
unwrapOpt: .optional_unwrapOpt(list<optional<A>>) -> list<A>
"""

_STRINGS: Final = """
charAt: .string_char_at_int(string, int) -> string
indexOf: .string_index_of_string(string, string) -> int
indexOf: .string_index_of_string_int(string, string, int) -> int
indexOf: .list_a_index_of_int(list<A>, A) -> int
lastIndexOf: .string_last_index_of_string(string, string) -> int
lastIndexOf: .string_last_index_of_string_int(string, string, int) -> int
lastIndexOf: .list_a_last_index_of_int(list<A>, A) -> int
lowerAscii: .string_lower_ascii(string) -> string
replace: .string_replace_string_string(string, string, string) -> string
replace: .string_replace_string_string_int(string, string, string, int) -> string
split: .string_split_string(string, string) -> list<string>
split: .string_split_string_int(string, string, int) -> list<string>
substring: .string_substring_int(string, int) -> string
substring: .string_substring_int_int(string, int, int) -> string
trim: .string_trim(string) -> string
upperAscii: .string_upper_ascii(string) -> string
format: .string_format(string, list<dyn>) -> string
strings.quote: strings_quote(string) -> string
join: .list_join(list<string>) -> string
join: .list_join_string(list<string>, string) -> string
find: .string_find_string(string, string) -> string
findAll: .string_find_all_string(string, string) -> list<string>
findAll: .string_find_all_string_int(string, string, int) -> list<string>
"""

_LISTS: Final = """
isSorted: .list_T_is_sorted_bool(list<T>) -> bool <T in int uint double bool dur ts string bytes>
sum: .list_T_sum(list<T>) -> T <T in int uint double dur>
max: .list_T_max(list<T>) -> T <T in int uint double bool dur ts string bytes>
min: .list_T_min(list<T>) -> T <T in int uint double bool dur ts string bytes>
sets.contains: list_sets_contains_list(list<A>, list<A>) -> bool
sets.equivalent: list_sets_equivalent_list(list<A>, list<A>) -> bool
sets.intersects: list_sets_intersects_list(list<A>, list<A>) -> bool
cel.@mapInsert: map_insert_key_value(map<A,B>, A, B) -> map<A,B>
cel.@mapInsert: map_insert_map(map<A,B>, map<A,B>) -> map<A,B>
"""

# cel-go's ext.Lists, version 3: the API server admits it in new expressions one release after its introduction in 1.34.
_EXTENDED_LISTS: Final = """
slice: .list_slice(list<A>, int, int) -> list<A>
flatten: .list_flatten(list<list<A>>) -> list<A>
flatten: .list_flatten_int(list<dyn>, int) -> list<dyn>
sort: .list_T_sort(list<T>) -> list<T> <T in int uint double bool dur ts string bytes>
@sortByAssociatedKeys: .list_T_sort_by(list<A>, list<T>) -> list<A> <T in int uint double bool dur ts string bytes>
lists.range: lists_range(int) -> list<int>
reverse: .list_reverse(list<A>) -> list<A>
distinct: .list_distinct(list<A>) -> list<A>
"""

_KUBERNETES: Final = """
quantity: string_to_quantity(string) -> quantity
isQuantity: is_quantity_string(string) -> bool
sign: quantity_sign(quantity) -> int
asApproximateFloat: .quantity_get_float(quantity) -> double
asInteger: .quantity_get_int(quantity) -> int
isInteger: .quantity_is_integer(quantity) -> bool
add: .quantity_add(quantity, quantity) -> quantity
add: .quantity_add_int(quantity, int) -> quantity
sub: .quantity_sub(quantity, quantity) -> quantity
sub: .quantity_sub_int(quantity, int) -> quantity
isGreaterThan: .T_is_greater_than(T, T) -> bool <T in quantity semver>
isLessThan: .T_is_less_than(T, T) -> bool <T in quantity semver>
compareTo: .T_compare_to(T, T) -> int <T in quantity semver>
semver: string_to_semver(string) -> semver
semver: string_bool_to_semver(string, bool) -> semver
isSemver: is_semver_string(string) -> bool
isSemver: is_semver_string_bool(string, bool) -> bool
major: .semver_major(semver) -> int
minor: .semver_minor(semver) -> int
patch: .semver_patch(semver) -> int
url: string_to_url(string) -> url
isURL: is_url_string(string) -> bool
getScheme: .url_get_scheme(url) -> string
getHost: .url_get_host(url) -> string
getHostname: .url_get_hostname(url) -> string
getPort: .url_get_port(url) -> string
getEscapedPath: .url_get_escaped_path(url) -> string
getQuery: .url_get_query(url) -> map<string,list<string>>
cidr: string_to_cidr(string) -> cidr
isCIDR: is_cidr(string) -> bool
containsIP: .cidr_contains_ip_string(cidr, string) -> bool
containsIP: .cidr_contains_ip_ip(cidr, ip) -> bool
containsCIDR: .cidr_contains_cidr_string(cidr, string) -> bool
containsCIDR: .cidr_contains_cidr(cidr, cidr) -> bool
prefixLength: .cidr_prefix_length(cidr) -> int
masked: .cidr_masked(cidr) -> cidr
ip: string_to_ip(string) -> ip
ip: .cidr_ip(cidr) -> ip
isIP: is_ip(string) -> bool
ip.isCanonical: ip_is_canonical(string) -> bool
family: .ip_family(ip) -> int
isUnspecified: .ip_is_unspecified(ip) -> bool
isLoopback: .ip_is_loopback(ip) -> bool
isLinkLocalMulticast: .ip_is_link_local_multicast(ip) -> bool
isLinkLocalUnicast: .ip_is_link_local_unicast(ip) -> bool
isGlobalUnicast: .ip_is_global_unicast(ip) -> bool
validate: .format-validate(format, string) -> optional<list<string>>
format.named: format-named(string) -> optional<format>
format.T: format.T() -> format <T in dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix \
dns1123SubdomainPrefix dns1035LabelPrefix labelValue uri uuid byte date datetime>
"""
_INCLUDES: Final = "includes: .dra_includes_dyn_dyn(dyn, dyn) -> bool"

_NAMES: Final = {
    "bool": types.BOOL, "int": types.INT, "uint": types.UINT, "double": types.DOUBLE, "string": types.STRING,
    "bytes": types.BYTES, "dyn": types.DYN, "ts": types.TIMESTAMP, "dur": types.DURATION, "quantity": types.QUANTITY,
    "semver": types.SEMVER, "url": types.URL, "ip": types.IP, "cidr": types.CIDR, "format": types.FORMAT,
}  # fmt: skip
_LINE: Final = re.compile(r"(\S+): (\.?)([^(]+)\((.*)\) -> (\S+?)(?: <T in (.+)>)?$")


@cache
def declarations(
    *, includes: bool, extended_lists: bool = True, modern: bool = False
) -> dict[str, tuple[Overload, ...]]:
    """Functions by name; `includes` adds the DRA function of that name, `extended_lists` cel-go's ext.Lists.

    `modern` is cel-go 0.29.
    """
    optional = [_INCLUDES] * includes + [_EXTENDED_LISTS] * extended_lists + [_INT_DURATION] * (not modern)
    lines = "\n".join([_STANDARD, _OPTIONAL, _STRINGS, _LISTS, _KUBERNETES, *optional])
    table: dict[str, list[Overload]] = {}
    for line in filter(None, lines.splitlines()):
        for function, overload in _overloads(line):
            table.setdefault(function, []).append(overload)
    for operator, name in (("_<_", "less"), ("_<=_", "less_equals"), ("_>_", "greater"), ("_>=_", "greater_equals")):
        table[operator] = [_comparison(name, kinds.split(",")) for kinds in _ORDERED.split()]
    return {function: tuple(overloads) for function, overloads in table.items()}


def _comparison(name: str, kinds: list[str]) -> Overload:
    operands = (_NAMES[kinds[0]], _NAMES[kinds[-1]])
    return Overload(f"{name}_{'_'.join(kinds)}", operands, types.BOOL, (), method=False)


def _overloads(line: str) -> list[tuple[str, Overload]]:
    found = _LINE.match(line)
    if found is None:
        raise ValueError(f"malformed declaration: {line}")
    function, dot, identity, arguments, result, choices = found.groups()
    if not choices:
        return [(function, _read(identity, arguments, result, method=bool(dot)))]
    read = []
    for choice in choices.split():
        name = choice.partition("<")[0]
        read.append(
            (
                re.sub(r"\bT\b", name, function),
                _read(
                    re.sub(r"(?<![a-zA-Z])T(?![a-zA-Z])", name, identity),
                    re.sub(r"\bT\b", choice, arguments),
                    re.sub(r"\bT\b", choice, result),
                    method=bool(dot),
                ),
            )
        )
    return read


def _read(identity: str, arguments: str, result: str, *, method: bool) -> Overload:
    return _overload(identity, tuple(_type(a) for a in arguments.split(", ") if a), _type(result), method=method)


def _overload(identity: str, arguments: tuple[Type, ...], result: Type, *, method: bool) -> Overload:
    parameters = {name for t in (*arguments, result) for name in _parameters(t)}
    return Overload(identity, arguments, result, tuple(sorted(parameters)), method=method)


def _parameters(t: Type) -> set[str]:
    if t.kind == "param":
        return {t.name}
    return {name for p in t.parameters for name in _parameters(p)}


def _type(text: str) -> Type:
    name, bracket, inner = text.partition("<")
    if not bracket:
        return _NAMES[name] if name in _NAMES else types.parameter(name)
    parts, depth, start = [], 0, 0
    inner = inner[:-1]
    for index, character in enumerate(inner):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append(inner[start:index])
            start = index + 1
    arguments = tuple(_type(part) for part in [*parts, inner[start:]])
    match name:
        case "list":
            return types.list_of(*arguments)
        case "map":
            return types.map_of(*arguments)
        case "type":
            return types.type_of(*arguments)
    return types.optional_of(*arguments)
