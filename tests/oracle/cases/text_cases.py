"""Selectors whose strings go through a parser: URLs, regular expressions, quantities, versions, addresses and more.

Correct strings, changed in a place or two; whether the parser takes them, and what it reads, decides the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

from tests.oracle.cases.selector_grammar import GPU
from tests.oracle.upstream import Json

# By parser: strings, and expressions with @ for a string of that sort and # for a part of it.
_PARSERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "url": (
        (
            "https://user:pw@host.example.com:8443/a/b?x=1&y=%20#f",
            "http://[::1]:80/p",
            "/path?x",
            "*",
            "//h:1/x",
            "mailto:a@b",
            "http://[fe80::1%25en0]/",
            "http://1.2.3.4:x/",
            "https://h/%zz",
            'http://h"/',
            "//h x/",
            "http://[1.2.3.4]/",
            "http://[]/",
            "http://é.example/%E6?q=é",
            "a://b/c;d=e",
            "HTTP://H/",
            "file:///etc",
        ),
        (
            "isURL(@)",
            "url(@).getHost() == #",
            "url(@).getPort() == #",
            "url(@).getHostname().contains(#)",
            "url(@).getEscapedPath() == #",
            "url(@).getScheme() == #",
            "url(@).getQuery().size() == 1",
            "url(@) == url(@)",
            "format.uri().validate(@).hasValue()",
        ),
    ),
    "pattern": (
        (
            "^G[0-9]+$",
            "a|b*",
            "(a(b)?)+",
            "[[:alpha:]]{2,3}",
            "\\pL",
            "\\p{Greek}",
            "\\PN",
            "(?i)gpu",
            "\\bx\\b",
            "[^a-c]",
            "(?P<n>x)",
            "(?<n>x)",
            "a{1000}",
            "x{0,}?",
            "\\d\\D\\s",
            "(?s).",
            "\\x{41}",
            "\\Qa.b\\E",
            "$",
            "\\z",
            "[a-\\d]",
            "(((a)))",
            "\\p{Lu}\\p{Han}",
            "a**",
            "[]a]",
            "(?U)a+",
        ),
        (
            '"GPU-18 b é".matches(@)',
            "#.matches(@)",
            "#.find(@) == #",
            '"a,b GPU 东京".findAll(@).size() == 1',
            "#.findAll(@, 2) == [#]",
            "#.matches(#)",
        ),
    ),
    "quantity": (
        (
            "40Gi",
            "1.5Gi",
            "100m",
            "1e3",
            "1E3",
            "12E",
            "0.5",
            ".5",
            "5.",
            "+1k",
            "-1Ki",
            "1n",
            "1e-9",
            "9223372036854775807",
            "9223372036854775808",
            "0x1",
            "1 Gi",
            "1ki",
            "1M",
            "00012",
            "1e1000",
            "1.0000000001",
        ),
        (
            "isQuantity(@)",
            "quantity(@).isInteger()",
            "quantity(@).asInteger() == 1",
            "quantity(@) == quantity(@)",
            "quantity(@).compareTo(quantity(@)) == 0",
            "quantity(@).asApproximateFloat() > 1.0",
            "sign(quantity(@)) == 1",
            "quantity(@).add(quantity(@)).isInteger()",
            "quantity(@).isLessThan(quantity(@))",
        ),
    ),
    "semver": (
        (
            "1.2.3",
            "1.2.3-rc.1+b7",
            "v1.2.3",
            "01.2.3",
            "1.2",
            "1",
            "1.2.3-01",
            "1.2.3+",
            "1.2.3-",
            "99999999999999999999.0.0",
            "1.2.3-a.-b",
            "1.2.3.4",
            " 1.2.3",
        ),
        (
            "isSemver(@)",
            "isSemver(@, true)",
            "semver(@).major() == 1",
            "semver(@, true).patch() == 3",
            "semver(@).isLessThan(semver(@))",
            "semver(@, true) == semver(@)",
            "semver(@).compareTo(semver(@)) == 0",
        ),
    ),
    "address": (
        (
            "10.0.0.1",
            "10.0.0.0/8",
            "::1",
            "2001:db8::/32",
            "::ffff:1.2.3.4",
            "fe80::1%en0",
            "010.0.0.1",
            "1.2.3",
            "10.0.0.1/33",
            "2001:DB8::1",
            "1:2:3:4:5:6:7::",
            "0.0.0.0/0",
            "10.0.0.1/08",
        ),
        (
            "isIP(@)",
            "isCIDR(@)",
            "ip(@).family() == 4",
            "ip.isCanonical(@)",
            "cidr(@).containsIP(@)",
            "cidr(@).prefixLength() == 8",
            "ip(@).isLoopback()",
            "cidr(@).masked() == cidr(@)",
            "string(ip(@)) == #",
            "cidr(@).containsCIDR(@)",
        ),
    ),
    "time": (
        (
            "90s",
            "-1h30m",
            "1.5h",
            "1ns",
            "1µs",
            "2562047h47m16.854775807s",
            "-2562047h47m16.854775808s",
            "1d",
            "0",
            ".5s",
            "1h ",
            "2026-11-21T10:20:30.25Z",
            "2026-11-21T10:20:30+05:30",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "2026-02-30T00:00:00Z",
            "2026-11-21t10:20:30z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T10:20:60Z",
            "10000-01-01T00:00:00Z",
        ),
        (
            "duration(@) > duration(@)",
            "timestamp(@) > timestamp(@)",
            "duration(@).getSeconds() == 90",
            "timestamp(@).getFullYear() == 2026",
            "timestamp(@) - duration(@) == timestamp(@)",
            "string(duration(@)) == #",
            "string(timestamp(@)) == #",
            "timestamp(@) - timestamp(@) > duration(@)",
            'timestamp(@).getHours("Asia/Kolkata") == 15',
        ),
    ),
    "number": (
        (
            "1",
            "-7",
            "+7",
            "0x1F",
            "1e3",
            "1.5",
            "NaN",
            "inf",
            "-Inf",
            "1_000",
            "9223372036854775808",
            "18446744073709551615",
            "true",
            "T",
            "0",
            "False",
            "1e400",
            "0x1p-2",
            " 1",
            ".5e1",
            "١",
        ),
        ("int(@) == 1", "double(@) > 1.0", "uint(@) == 1u", "bool(@)", "string(double(@)) == #", "int(double(@)) == 1"),
    ),
    "format": (
        (
            "%s",
            "%d %s",
            "%.2f",
            "%x",
            "%X",
            "%b",
            "%o",
            "%e",
            "%.300f",
            "%.3e",
            "%%",
            "%",
            "%5d",
            "%-s",
            "%q",
            "%.s",
            "é%s",
        ),
        (
            '@.format(["a"]) == #',
            "@.format([1]) == #",
            "@.format([1.5]) == #",
            "@.format([-1, true]).size() == 2",
            "@.format([[1, 2]]) == #",
            "@.format([duration(@)]) == #",
            '@.format([{"a": 1}]) == #',
            '@.format([b"ab"]) == #',
            "@.format([null]) == #",
            "@.format([1e300]).size() > 3",
            "@.format([18446744073709551615u]) == #",
        ),
    ),
    "syntax": (
        (
            "1 in [1]",
            "1 indyn([1])",
            '"ecc" indevice.attributes',
            "[1].all(x, x == 1)",
            "[1].all(.y, true)",
            "has(device.driver)",
            "cel.bind(v, 1, v == 1)",
            'isQuantity(cel.bind(v, "K", v))',
            "true ? false : true",
            "!!true",
            "--1 == 1",
            "1 .size() == 1",
            'has((false ? {} : device.attributes["d"]).a)',
            "`a` == 1",
            "device.?driver.hasValue()",
            "1u == 1u",
            "0x10 == 16",
            "r'\\d' == '\\\\d'",
            "'''a''' == 'a'",
            "b'\\xff' == b'\\377'",
            "{'a': 1}.a == 1",
            "[1, 2,] == [1, 2]",
            "{1: 2,}[1] == 2",
            "1 == 1 // c",
            "true&&false||true",
            "a.b",
            "null == null",
            "[?optional.of(1)] == [1]",
            "[1][0] == 1",
            "'\\u00e9' == 'é'",
        ),
        ("~",),
    ),
}
_SIGNS = "0123456789aAzZ.-+:/%?#[]()*{}\\|^$ @,;_'\"é东\u0300\x00\n<>=&!~"
_DEVICE: Json = {"driver": GPU, "attributes": {"ecc": {"bool": True}, "d/a": {"int": 1}}}


def text_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return text_drawn(Random(seed))


def text_drawn(rng: Random) -> Json:
    """A question made of what `rng` draws."""
    words, templates = _PARSERS[rng.choice(tuple(_PARSERS))]
    template = rng.choice(templates)
    found = []
    last = rng.choice(words)
    for sign in template:
        if sign == "@":
            last = _changed(rng, rng.choice(words))
            found.append(json.dumps(last, ensure_ascii=False))
        elif sign == "#":
            start = rng.randrange(len(last) + 1)
            found.append(json.dumps(last[start : rng.randrange(start, len(last) + 1)], ensure_ascii=False))
        elif sign == "~":
            found.append(_changed(rng, last))
        else:
            found.append(sign)
    return {"tree": ["".join(found)], "devices": [_DEVICE], "lists": False, "new": rng.random() < 0.5}


def _changed(rng: Random, word: str) -> str:
    """The word, or the word with a sign more, less or another, or with a part of it twice."""
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(word) + 1)
        draw = rng.random()
        if draw < 0.4:
            word = word[:at] + rng.choice(_SIGNS) + word[at:]
        elif draw < 0.7:
            word = word[:at] + word[at + 1 :]
        elif draw < 0.9:
            word = word[:at] + rng.choice(_SIGNS) + word[at + 1 :]
        else:
            word = word[:at] + word[at // 2 :]
    return word
