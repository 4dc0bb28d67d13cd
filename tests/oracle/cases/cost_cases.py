"""Selectors that cost nearly a million, the most that Kubernetes lets one cost: a little less, exactly that, and more.

Upstream keeps account of a cost in a way that takes longer the more it is, seconds and more: these cases have a time
limit of their own, and there are few of them.
"""

from __future__ import annotations

from random import Random

from tests.oracle.upstream import Json

_MOST = 1_000_000
_DRIVER = "gpu.example.com"
_TEXT = "x" * 2000
# Expressions with @ for a number, what they cost with 0, and what each further unit of the number costs.
_GROWING: tuple[tuple[str, int, int], ...] = (
    ('lists.range(@).all(x, "~".contains("y") == false)', 12, 205),
    ('lists.range(@).all(x, !"~".matches("y+z"))', 12, 206),
    ('lists.range(@).exists(x, "~" == "~y")', 12, 205),
    ('lists.range(@).map(x, "~" + "~").size() > 0', 14, 413),
    ("sets.contains(lists.range(@), lists.range(400))", 423, 401),
    ("lists.range(@).all(x, lists.range(100).all(y, x + y >= 0))", 12, 816),
    (f'lists.range(@).exists(x, device.attributes["{_DRIVER}"].model + "~" == "~")', 12, 416),
    ('lists.range(@).all(x, "~".replace("x", "yy").size() > 0)', 12, 406),
    ('lists.range(@).all(x, "~".split("").size() > 5)', 12, 406),
    ('lists.range(@).filter(x, "~".lowerAscii() == "~").size() >= 0', 14, 414),
    ("lists.range(@).all(x, lists.range(1000).sum() >= 0)", 12, 2016),
    ("lists.range(@).all(x, 999 in lists.range(1000))", 12, 2015),
    ("lists.range(@).all(x, lists.range(200) == lists.range(200))", 12, 446),
    ("lists.range(@).all(x, lists.range(1000).isSorted())", 12, 2015),
    ('lists.range(@).exists_one(x, isSemver("~"))', 13, 201),
    ('lists.range(@).all(x, lists.range(300).max() == 299 || "~".endsWith("~"))', 12, 616),
)
# Cheap to go on with, and slow upstream: more than twenty seconds.
_SLOW = (f'lists.range(@).all(x, device.capacity["{_DRIVER}"].memory.isGreaterThan(quantity("1Gi")))', 12, 10)
# Goes before the others, to come as near to the limit as its own units allow.
_FILLING = ("lists.range(@).all(x, x >= 0) && ", 12, 6)


def cost_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return cost_drawn(Random(seed))


def cost_drawn(rng: Random) -> Json:
    """A question made of what `rng` draws."""
    template, fixed, each = _SLOW if rng.random() < 0.02 else rng.choice(_GROWING)
    filling, filling_fixed, filling_each = _FILLING
    left = _MOST - fixed - filling_fixed
    number = max(0, left // each - rng.choice((0, 0, 0, 1, 1, 2)))
    more = (left - number * each) // filling_each + rng.choice((-1, 0, 0, 1, 1, 2))
    expression = filling.replace("@", str(max(0, more))) + template.replace("@", str(number)).replace("~", _TEXT)
    device = {
        "driver": _DRIVER,
        "attributes": {"model": {"string": "x" * 64}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    return {"tree": [expression], "devices": [device], "lists": False, "new": False}
