"""A grammar of CEL selectors as data: for each type, what may stand where it is wanted.

`§type` in a template is a hole for an expression of that type. Some templates walk a map, whose order Go draws anew
each time: the outcome is the same in every order, the cost is not, which the comparison finds out by asking again.

Not in the grammar: map and filter over maps, whose results show the order; capacities of 100Ti and more, on which
arithmetic changes the device for whoever looks next; long lists.range, for which upstream takes all memory there is.
"""

from __future__ import annotations

from collections.abc import Mapping

GPU, NIC = "gpu.example.com", "nic.example.com"
_A, _N = f'device.attributes["{GPU}"]', f'device.attributes["{NIC}"]'
_C, _B = f'device.capacity["{GPU}"]', f'device.capacity["{NIC}"]'

LEAVES: Mapping[str, tuple[str, ...]] = {
    "bool": ("true", "false", f"{_A}.ecc", f"{_N}.rdma", f"has({_A}.ecc)", f"has({_N}.nope)", f"{_A}.nope",
             "device.allowMultipleAllocations", 'device.driver == "gpu.example.com"', f'"ecc" in {_A}'),
    "int": ("0", "1", "2", "-1", "7", "100", "9223372036854775807", "-9223372036854775808", f"{_A}.index", f"{_N}.mtu",
            f"{_A}.nope", f"{_N}.lowest", "0x1F"),
    "small": ("-1", "0", "3", "12", "1 + 1"),
    "uint": ("0u", "1u", "7u", "18446744073709551615u"),
    "double": ("0.0", "1.5", "-2.0", "1e3", "1e300", ".5"),
    "string": ('""', '"a"', '"gpu"', "'H100'", '"a,b,c"', '"1.2.3"', '"40Gi"', '"é東😀"', 'r"\\d+"', '"^G"', '"  x "',
               "device.driver", f"{_A}.model", f"{_A}.uuid", f"{_N}.ip", f"{_N}.label", f"{_A}.nope", '"10.0.0.1"'),
    "bytes": ('b""', 'b"abc"', 'b"\\xff"', 'b"é"'),
    "quantity": ('quantity("1")', 'quantity("40Gi")', 'quantity("500m")', 'quantity("1.5")', 'quantity("1k")',
                 'quantity("x")', f"{_C}.memory", f"{_C}.cores", f"{_C}.ratio", f"{_B}.bandwidth", f"{_C}.nope"),
    "semver": ('semver("1.2.3")', 'semver("9.0.0-rc.1")', 'semver("1.0", true)', 'semver("v2")', f"{_A}.driverVersion",
               f"{_N}.firmware", f"{_A}.nope"),
    "ints": ("[]", "[1, 2, 3]", "[3, 1, 2]", "[0]", "lists.range(4)", "[5, 5]"),
    "strings": ("[]", '["a"]', '["b", "a", "b"]', '["gpu", "mig"]', '"a,b".split(",")'),
    "map": (_A, _N, "{}", '{"a": 1}', '{"ecc": true, "b": false}', 'device.attributes["no.such.domain"]'),
    "capacities": (_C, _B, 'device.capacity["no.such.domain"]'),
    "duration": ('duration("90s")', 'duration("-1h30m")', 'duration("0")', 'duration("1ns")'),
    "timestamp": ('timestamp("2026-11-21T10:20:30.25Z")', 'timestamp("1969-12-31T23:59:59Z")', "timestamp(0)"),
    "ip": ('ip("10.0.0.1")', 'ip("2001:db8::1")', f"ip({_N}.ip)", 'ip("1.2.3")'),
    "cidr": ('cidr("10.0.0.0/8")', 'cidr("2001:db8::/32")', f"cidr({_N}.net)"),
    "url": ('url("https://u@h.example.com:8443/a/b?x=1&y=2&x=3")', 'url("/p")', f"url({_N}.endpoint)", 'url("../x")'),
    "type": ("bool", "int", "string", "double", "list", "map", "type", "null_type"),
    "null": ("null",),
    "optional": (f"{_A}.?index", f"{_A}.?nope", "optional.of(1)", "optional.none()", f"{_A}[?'model']"),
    "zone": ('"UTC"', '"America/New_York"', '"+05:30"', '"-02:00"', '"Nowhere/City"'),
    "format": ('"%s"', '"%d"', '"%x"', '"%f"', '"%.2f"', '"%e"', '"%o"', '"%b"', '"%X"', '"%%%s"', '"%s %s"'),
}  # fmt: skip
# What an attribute is depends on the device.
_READS = (
    *(f"{_A}.{name}" for name in ("ecc", "index", "ecc", "index", "ecc", "index", "model", "driverVersion", "nope")),
    *(f"{_N}.rdma", f"{_N}.mtu", f'{_A}["index"]', f'{_A}[?"index"].orValue(1)', f"dyn({_A}.ecc)"),
)
_PLAIN = ("1", "0", "true", "false", '"1"', '""', '"1.0.0"', 'semver("1.0.0")', "1u", "0.0", "[1]", "[true]", "null")
LEAVES = {
    **LEAVES,
    "plain": tuple(f"dyn({value})" for value in _PLAIN),
    "read": _READS,
    "near": (f"{_A}.ecc == true", f"{_A}.index == 1", f"{_C}.cores.isInteger()"),
}
LEAVES = {**LEAVES, "number": LEAVES["int"] + LEAVES["double"] + LEAVES["uint"]}

RULES: Mapping[str, tuple[str, ...]] = {
    "near": (
        *("§read == 1", "§read == true", "§read == 0", "§read == false", "§read == §plain", "§read != §plain") * 3,
        *("§read >= 0", "§read == 1.0", "type(§read) == bool", "type(§read) == int", "§read in [§plain]") * 2,
        "§read == §bool", "§read == §int", "§read == §string", "§read == §semver", "§read != §read", "§read == §read",
        "§read == §double", "§read == §uint", "§read >= §int", "§read < §string", "§read in [true, 1, 0.0]", "§read",
        "type(§read) == §type", "type(§read) == type(§read)", "[§read] == [§read]", "string(§read) == §string",
        '{"a": §read} == {"a": §read}', "(§read ? §bool : §bool)", "!(§read)", "§read && §bool", "§bool || §read",
        "§read.isGreaterThan(§semver)", "§read.startsWith(§string)", "§read + §int == §int", "§read in §ints",
        f"{_C}.memory.isInteger()", f"{_C}.cores.isInteger() && {_C}.cores.asInteger() == §int",
        f"{_C}.memory == {_C}.cores", f"{_C}.ratio.compareTo({_C}.cores) == §int", f"{_C}.ratio == §quantity",
        f"{_C}.cores.asApproximateFloat() == §double", f"{_C}.memory.add({_C}.ratio).isInteger()",
        f"{_C}.memory.sub(§quantity).asInteger() == §int", f"has({_A}.index)", f"has({_C}.memory) || §bool",
        f'"index" in {_A} ? §read == §read : §bool', f"size({_A}) == §int", f"{_A} == {_N}", f"{_A} == {_A}",
        f"{_A}.exists(k, k == §string)", "device.attributes.size() == §int", "sets.contains([§read], [§read])",
        "[§read, §read].distinct().size() == §int", "§read in [§read, §read]",
        "device.allowMultipleAllocations == §bool",
        "google.protobuf.BoolValue{value: §read} == §bool", "google.protobuf.Int64Value{value: §read} == §int",
        "google.protobuf.StringValue{value: §read} == §string", "google.protobuf.DoubleValue{value: §read} == §double",
        "google.protobuf.Timestamp{seconds: §read} == §timestamp",
        "google.protobuf.Duration{seconds: §read} == §duration",
        "google.protobuf.Value{number_value: §read} == §double",
        "google.protobuf.ListValue{values: [§read]} == [§read]",
        'google.protobuf.Struct{fields: {"a": §read}} == {"a": §read}',
    ),
    "plain": ("§plain",),
    "read": ("dyn(§read)", "(§bool ? §read : §read)", "[§read, §read][§small]", "cel.bind(r, §read, r)"),
    "bool": (
        "§bool && §bool", "§bool || §bool", "!(§bool)", "(§bool ? §bool : §bool)", "§int == §int", "§int != §int",
        "§number < §number", "§number >= §number", "§string == §string", "§string != §string", "§string < §string",
        "§quantity.isGreaterThan(§quantity)", "§quantity.isLessThan(§quantity)", "§quantity == §quantity",
        "§quantity.isInteger()", "§semver.isGreaterThan(§semver)", "§semver.isLessThan(§semver)", "§semver == §semver",
        "isQuantity(§string)", "isSemver(§string)", "isSemver(§string, §bool)", "isIP(§string)", "isURL(§string)",
        "isCIDR(§string)", "ip.isCanonical(§string)", "§string.startsWith(§string)", "§string.endsWith(§string)",
        "§string.contains(§string)", "§string.matches(§string)", "matches(§string, §string)", "§int in §ints",
        "§string in §strings", "§string in §map", "§string in §capacities", "§ints == §ints", "§strings == §strings",
        "§strings.exists(x, x == §string)", "§strings.all(x, x.size() > §int)", "§ints.exists(x, x > §int)",
        "§ints.all(x, x / §int < 2)", "§ints.exists_one(x, 1 / x > 0)", "§ints.all(i, x, i <= x)",
        "§ints.exists(i, x, i == x || §bool)", "§strings.existsOne(i, x, x == §string)", "§ints.isSorted()",
        "§strings.isSorted()", "sets.contains(§ints, §ints)", "sets.intersects(§strings, §strings)",
        "sets.equivalent(§ints, §ints)", "cel.bind(a, §map, has(a.index) && a.index == §int)",
        "cel.bind(a, §int, a * a == §int || §bool)", "cel.bind(a, §capacities, a.memory == §quantity)",
        "cel.bind(q, §quantity, q.isLessThan(§quantity) && q.isInteger())", "§optional.hasValue()",
        "type(§int) == §type", "type(§string) == type(§string)", "§ip.isLoopback()", "§ip.isGlobalUnicast()",
        "§ip == §ip", "§cidr.containsIP(§ip)", "§cidr.containsIP(§string)", "§cidr.containsCIDR(§cidr)", "§url == §url",
        "§timestamp < §timestamp", "§duration >= §duration", "§bytes == §bytes", "§quantity == §null", "§map == §map",
        "bool(§string)", "dyn(§int) == §double", "dyn(§int) == dyn(§string)", "§bool == §bool", "§bytes < §bytes",
        "§string.includes(§string)", "§strings.includes(§string)", f"{_A}.names.includes(§string)",
        f'{_A}.names.exists(x, x == §string)', "dyn(§ints).all(x, x > §int)", "§bool in [§bool, §bool]",
        "§map == {}", "size(§map) == §int", "§int == §double", "§semver > §semver", "§quantity < §int",
        "§map.exists(k, k == §string)", "§map.all(k, k != §string)", "§map.exists(k, v, v == §int)",
        "§map.all(k, v, k != §string || §bool)", "device.attributes.exists(k, k == §string)",
        "§capacities.all(k, k != §string)", "§map.exists_one(k, k == §string)",
    ),
    "number": ("§int", "§double", "§uint"),
    "int": (
        "§int + §int", "§int - §int", "§int * §int", "§int / §int", "§int % §int", "-(§int)", "(§bool ? §int : §int)",
        "§string.size()", "size(§string)", "size(§ints)", "size(§map)", "§strings.size()", "int(§string)",
        "int(§double)", "int(§uint)", "§quantity.asInteger()", "sign(§quantity)", "§quantity.compareTo(§quantity)",
        "§semver.major()",
        "§semver.minor()", "§semver.patch()", "§semver.compareTo(§semver)", "§string.indexOf(§string)",
        "§string.indexOf(§string, §int)", "§string.lastIndexOf(§string)", "§string.lastIndexOf(§string, §int)",
        "§ints.sum()", "§ints.max()", "§ints.min()", "§ints.indexOf(§int)", "§ints.lastIndexOf(§int)", "§ints[§int]",
        "§optional.orValue(§int)", "§optional.value()", "§ip.family()", "§cidr.prefixLength()", "int(§timestamp)",
        "§timestamp.getHours()", "§timestamp.getDayOfWeek(§zone)", "§timestamp.getFullYear()", "§duration.getMinutes()",
        "§timestamp.getMonth(§zone)", "§duration.getMilliseconds()", "§ints.reduce(0)", "§map[§string]", "size(§bytes)",
        "cel.bind(a, §int, a + a)", "§optional.optMap(v, v + 1).orValue(§int)", "§ints.first().orValue(§int)",
    ),
    "small": ("§small % 5", "§small + §small"),
    "uint": ("§uint + §uint", "§uint - §uint", "§uint * §uint", "uint(§int)", "uint(§string)", "§uint / §uint"),
    "double": (
        "§double + §double", "§double - §double", "§double * §double", "§double / §double", "double(§int)",
        "double(§string)", "§quantity.asApproximateFloat()", "-(§double)",
    ),
    "string": (
        "§string + §string", "(§bool ? §string : §string)", "string(§int)", "string(§double)", "string(§bool)",
        "string(§uint)", "string(§duration)", "string(§timestamp)", "string(§bytes)", "string(§ip)", "string(§cidr)",
        "§string.charAt(§int)", "§string.lowerAscii()", "§string.upperAscii()", "§string.trim()",
        "§string.replace(§string, §string)", "§string.replace(§string, §string, §int)", "§string.substring(§int)",
        "§string.substring(§int, §int)", "§string.find(§string)", "§strings.join()", "§strings.join(§string)",
        "§strings[§int]", "strings.quote(§string)", "§format.format([§int])", "§format.format([§string])",
        "§format.format([§double])", "§format.format([§string, §int])", "§format.format([§ints])", "§url.getHost()",
        "§url.getScheme()", "§url.getHostname()", "§url.getPort()", "§url.getEscapedPath()", "§map[§string]",
        "cel.bind(a, §string, a + a)", "§map.?model.orValue(§string)", "§strings.max()",
    ),
    "bytes": ("bytes(§string)", "§bytes + §bytes"),
    "quantity": (
        "§quantity.add(§quantity)", "§quantity.sub(§quantity)", "§quantity.add(§int)", "§quantity.sub(§int)",
        "quantity(§string)", "(§bool ? §quantity : §quantity)",
    ),
    "semver": ("semver(§string)", "semver(§string, §bool)", "(§bool ? §semver : §semver)"),
    "ints": (
        "[§int, §int]", "§ints + §ints", "§ints.map(x, x * §int)", "§ints.filter(x, x > §int)",
        "§ints.map(x, x > 1, x + 1)", "§ints.sort()", "§ints.distinct()", "§ints.reverse()", "§ints.slice(§int, §int)",
        "lists.range(§small)", "[§ints, §ints].flatten()", "§strings.map(x, x.size())", "(§bool ? §ints : §ints)",
        "§ints.sortBy(x, -x)", "§ints.transformList(i, x, i + x)", "[?§optional, §int]",
    ),
    "strings": (
        "[§string, §string]", "§strings + §strings", "§string.split(§string)", "§string.split(§string, §int)",
        "§strings.filter(x, x != §string)", "§strings.map(x, x + §string)", "§string.findAll(§string)",
        "§strings.sort()", "§strings.distinct()", "§strings.reverse()", "§url.getQuery()[§string]",
        "§string.findAll(§string, §int)",
    ),
    "map": ('{§string: §int}', '{"a": §int, "b": §int}', "(§bool ? §map : §map)"),
    "capacities": ("(§bool ? §capacities : §capacities)",),
    "duration": (
        "§duration + §duration", "§timestamp - §timestamp", "duration(§string)", "§duration - §duration",
    ),
    "timestamp": ("§timestamp + §duration", "timestamp(§string)", "timestamp(§int)", "§timestamp - §duration"),
    "ip": ("§cidr.ip()", "ip(§string)"),
    "cidr": ("§cidr.masked()", "cidr(§string)"),
    "url": ("url(§string)",),
    "type": ("type(§int)", "type(§string)", "type(§quantity)", "type(§map)", "type(§double)", "type(§ints)"),
    "null": ("null",),
    "optional": (
        "§optional.or(§optional)", "optional.ofNonZeroValue(§int)", "§map[?§string]", "§ints[?§int]",
        "optional.of(§string)", "§optional.optMap(v, v)", "§optional.optFlatMap(v, optional.of(v))",
    ),
    "zone": ("§string",),
    "format": ("§string",),
}  # fmt: skip
