"""Random selectors over several devices, many of them nearly equal.

Well typed for the most part, with a wrong type here and there.

A case keeps its expression as a tree of [template, children…], so that it can be made smaller piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeAlias

from tests.oracle.cases.long_names import lengthened
from tests.oracle.cases.near_equal import near_equal
from tests.oracle.cases.selector_grammar import GPU, LEAVES, NIC, RULES
from tests.oracle.upstream import Json

Tree: TypeAlias = list["str | Tree"]  # the template first, then one tree per hole
_DEEPEST = 3
_WRONG = 0.04  # share of holes that get an expression of some other type
HOLE = "§"

DEVICES: Sequence[Json] = (
    {
        "driver": GPU,
        "attributes": {
            "model": {"string": "H100"},
            "uuid": {"string": "GPU-18db0e85"},
            "index": {"int": 3},
            "ecc": {"bool": True},
            "driverVersion": {"version": "550.54.15"},
            f"{NIC}/mtu": {"int": 9000},
        },
        "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "132"}, "ratio": {"value": "500m"}},
    },
    {
        "driver": NIC,
        "allowMultipleAllocations": True,
        "attributes": {
            "ip": {"string": "10.20.30.40"},
            "net": {"string": "10.20.0.0/16"},
            "endpoint": {"string": "https://user@fabric.example.com:8443/v1?id=7&x=a%20b"},
            "label": {"string": "zone=é-東京-😀"},
            "mtu": {"int": 9000},
            "lowest": {"int": -(2**63)},
            "rdma": {"bool": False},
            "firmware": {"version": "22.39.1002-rc.1+build7"},
            f"{GPU}/model": {"string": "mig"},
            f"{GPU}/index": {"int": 0},
        },
        "capacity": {"bandwidth": {"value": "100G"}, f"{GPU}/memory": {"value": "4864Mi"}},
    },
    {
        "driver": GPU,
        "attributes": {
            "names": {"strings": ["a", "gpu", "H100"]},
            "index": {"ints": [1, 2, 3]},
            "ecc": {"bools": [True, False]},
            "driverVersion": {"versions": ["1.2.3", "2.0.0"]},
            "model": {"string": ""},
        },
        "capacity": {"memory": {"value": "1.5Gi"}, "cores": {"value": "0"}},
    },
    {"driver": "dra.example.org"},
)


def selector_case(seed: str) -> Json:
    """The question that belongs to a seed, always the same."""
    return selector_drawn(Random(seed))


def selector_drawn(rng: Random) -> Json:
    """A question made of whatever `rng` says, which may be Hypothesis."""
    lists = rng.random() < 0.4
    near = rng.random() < 0.6
    wanted = "near" if near and rng.random() < 0.6 else "bool"
    case: Json = {
        "tree": _tree(rng, wanted, rng.choice(range(1, _DEEPEST + 1))),
        "devices": _nearly_equal(rng, lists=lists) if near else _different(rng, lists=lists),
        "lists": lists,
        "new": rng.random() < 0.3,
    }
    return lengthened(case) if rng.random() < 0.08 else case


def _nearly_equal(rng: Random, *, lists: bool) -> list[Json]:
    names = rng.choice((("ecc", "index"), ("ecc", "index", "model", "driverVersion", f"{NIC}/rdma")))
    devices = near_equal(rng, names, ("memory", "cores", "ratio"), (GPU, NIC), lists=lists or rng.random() < 0.02)
    if rng.random() < 0.3:
        devices.append({**devices[0], "driver": NIC})
    rng.shuffle(devices)
    return devices


def _different(rng: Random, *, lists: bool) -> list[Json]:
    # Without the gate, a device with list values fails every evaluation: once in a while is enough.
    return list(rng.choices(DEVICES, (45, 30, 20 if lists else 1, 5), k=rng.choice((1, 2, 4))))


def text(tree: Tree) -> str:
    """The expression that a tree stands for."""
    template, *children = tree
    assert isinstance(template, str)
    pieces = template.split(HOLE)
    found = [pieces[0]]
    for child, piece in zip(children, pieces[1:], strict=True):
        assert isinstance(child, list)
        found += [_operand(child), piece]
    return "".join(found)


def _tree(rng: Random, wanted: str, depth: int) -> Tree:
    if rng.random() < _WRONG:
        wanted = rng.choice(tuple(RULES))
    if depth == 0 or rng.random() < 0.1:
        return [rng.choice(LEAVES[wanted])]
    template, holes = _outline(rng.choice(RULES[wanted]))
    return [template, *(_tree(rng, hole, depth - 1) for hole in holes)]


def _outline(template: str) -> tuple[str, list[str]]:
    """A template with bare holes, and the types of the holes."""
    pieces = template.split(HOLE)
    outline, holes = [pieces[0]], []
    for piece in pieces[1:]:
        size = next((i for i, letter in enumerate(piece) if not letter.isalpha()), len(piece))
        holes.append(piece[:size])
        outline.append(piece[size:])
    return HOLE.join(outline), holes


def _operand(tree: Tree) -> str:
    """In parentheses where an operator could otherwise take a part of it."""
    expression = text(tree)
    return f"({expression})" if any(sign in expression for sign in " ?-{") else expression
