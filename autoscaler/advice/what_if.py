"""Changes that a user asks for before planning again: where and how to buy, prices, types, the size of blocks.

A question is text as `plan --what-if` takes it. Each one changes the inputs of a plan; several are asked together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from autoscaler.errors import BadInputError
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.places import priced_regions
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog, UnknownInstanceTypeError
from instance_catalog.types.clouds import clouds_of_region, facts_of, is_regular_region
from instance_catalog.types.instance_type import CapacityType, InstanceType, Price

FORMS: Final = ("spot", "region us-east4", "price p5.48xlarge=40", "without p5.48xlarge", "block +4", "block NAME +4")
_KINDS: Final = tuple(kind.value for kind in CapacityType)
_ONLY_ASKED_FOR: Final = (CapacityType.SPOT, CapacityType.FLEX_START)
_BLOCK: Final = re.compile(r"(?:(\S+) )?([+-][0-9]{1,4})", re.ASCII)
_MOST: Final = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Inputs:
    """`without`: the types that a question left out of the catalog."""

    snapshot: Snapshot
    catalog: Catalog
    policy: Policy
    without: frozenset[str] = frozenset()


def changed(inputs: Inputs, questions: Iterable[str]) -> Inputs:
    """The inputs with everything changed that the questions ask for. Raises BadInputError."""
    made: dict[str, str] = {}
    for question in questions:
        words = " ".join(question.split())
        subject = _subject(words)
        if subject and subject in made:
            text = f"--what-if {question!r} changes the same as {made[subject]!r}"
            raise BadInputError(text, next_step="give one of the two, or ask twice")
        made[subject] = question
        inputs = _changed(inputs, question, words)
    return inputs


def _subject(words: str) -> str:
    """What the question changes, of which only the last value would count; "" for changes that add up."""
    verb, _, rest = words.partition(" ")
    if verb == "price":
        name, _, kind = rest.partition("=")[0].strip().partition("/")
        return f"{name}/{kind or CapacityType.ON_DEMAND}"
    return verb if verb == "region" else "capacity type" if verb in _KINDS else ""


def _changed(inputs: Inputs, question: str, words: str) -> Inputs:
    verb, _, rest = words.partition(" ")
    if verb in _KINDS and not rest:
        return _buying(inputs, CapacityType(verb))
    change = _CHANGES.get(verb)
    if change is not None and not rest:
        forms = [form for form in FORMS if form.split()[0] == verb]
        text = f"--what-if {question!r} does not say what"
        raise BadInputError(text, next_step=f"write {' or '.join(map(repr, forms))}")
    if change is None:
        step = did_you_mean(verb, [*_CHANGES, *_KINDS], f"write one of: {', '.join(repr(form) for form in FORMS)}")
        raise BadInputError(f"--what-if {question!r} is not understood", next_step=step)
    return change(inputs, rest)


def _buying(inputs: Inputs, kind: CapacityType) -> Inputs:
    """This capacity type first, then the others that the pools list."""
    pools = inputs.snapshot.pools
    listed = [found for pool in pools for found in pool.capacity_types] or [
        k for k in CapacityType if k not in _ONLY_ASKED_FOR
    ]
    where = replace(inputs.policy.where, capacity_types=tuple(dict.fromkeys((kind, *listed))))
    return replace(inputs, policy=replace(inputs.policy, where=where))


def _region(inputs: Inputs, name: str) -> Inputs:
    regions = priced_regions(inputs.catalog)
    if name not in regions:
        clouds = clouds_of_region(name)
        known = sorted(found for found in regions if not clouds or set(clouds) & set(clouds_of_region(found)))
        syncs = " or ".join(sync_command(cloud, name) for cloud in clouds) or "`foreslice catalog sync`"
        read = f"read them with {syncs}, and give --catalog DIR."
        # A regular name is a region of its own, however much like another one.
        near = read if is_regular_region(name) else did_you_mean(name, known, read)
        step = f"{near} The catalog knows {', '.join(known)}"
        raise BadInputError(f"--what-if: the catalog has no prices of a region {name!r}", next_step=step)
    return replace(inputs, policy=replace(inputs.policy, where=replace(inputs.policy.where, regions=(name,))))


def sync_command(cloud: str, region: str) -> str:
    """The command that reads the prices of a region."""
    return f"`foreslice catalog sync {facts_of(cloud).sync.replace('<REGION>', region)} --into DIR --write`"


def _price(inputs: Inputs, text: str) -> Inputs:
    named, separator, amount = (part.strip() for part in text.partition("="))
    name, _, kind = named.partition("/")
    kind = kind or CapacityType.ON_DEMAND
    if not separator or kind not in _KINDS:
        step = "write 'price p5.48xlarge=40', or 'price p5.48xlarge/spot=12'"
        raise BadInputError(f"--what-if 'price {text}' is not understood", next_step=step)
    found, usd = _type(inputs, name), _usd(amount)
    capacity_type = CapacityType(kind)
    prices = _with_price(found.prices, capacity_type, usd)
    zones = FrozenMap({z: _with_price(known, capacity_type, usd) for z, known in found.zone_prices.items()})
    if (prices, zones) == (found.prices, found.zone_prices) and not _has(found, capacity_type):
        field = "price" if capacity_type is CapacityType.ON_DEMAND else f"price.{kind}"
        command = f"foreslice catalog set {found.name} {field}={amount} --into DIR --reason WHY"
        step = f"add one: `{command}`, and give --catalog DIR"
        raise BadInputError(f"--what-if: {found.name} has no {kind} price that could change", next_step=step)
    return _with_types(inputs, {found.name: replace(found, prices=prices, zone_prices=zones)})


def _has(found: InstanceType, kind: CapacityType) -> bool:
    return kind in found.prices or any(kind in known for known in found.zone_prices.values())


def _with_price(
    prices: FrozenMap[CapacityType, Price], kind: CapacityType, usd: Decimal
) -> FrozenMap[CapacityType, Price]:
    return FrozenMap({k: replace(p, usd_per_hour=usd) if k is kind else p for k, p in prices.items()})


def _usd(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("nan")
    if not found.is_finite() or not 0 <= found <= _MOST:
        step = "write dollars per hour, such as 40 or 31.5"
        raise BadInputError(f"--what-if: {text!r} is not a price", next_step=step)
    return found


def _without(inputs: Inputs, name: str) -> Inputs:
    gone = _type(inputs, name).name
    return replace(_with_types(inputs, {gone: None}), without=inputs.without | {gone})


def _with_types(inputs: Inputs, types: Mapping[str, InstanceType | None]) -> Inputs:
    """The catalog with some types replaced, or without them where None stands."""
    catalog = inputs.catalog
    kept = [found for found in (types.get(old.name, old) for old in catalog) if found is not None]
    return replace(inputs, catalog=Catalog.of(kept, catalog.accelerators.values(), catalog.drivers.values()))


def _type(inputs: Inputs, name: str) -> InstanceType:
    if name in inputs.without:
        text = f"--what-if: {name} is left out by 'without {name}'"
        raise BadInputError(text, next_step="give one of the two changes, or ask twice")
    try:
        return inputs.catalog.get(name)
    except UnknownInstanceTypeError as error:
        raise BadInputError(f"--what-if: {error}") from error


def _block(inputs: Inputs, text: str) -> Inputs:
    """So many machines more or fewer in a block, or in the only one."""
    found, blocks = _BLOCK.fullmatch(text), inputs.snapshot.blocks
    names = [block.name for block in blocks]
    if found is None or not int(found[2]):
        wrong = "is not understood" if found is None else "changes nothing"
        raise BadInputError(f"--what-if 'block {text}' {wrong}", next_step="write 'block +4' or 'block NAME +4'")
    if not blocks:
        step = "give the CapacityBlock with -f"
        raise BadInputError("--what-if: there is no CapacityBlock that could have more machines", next_step=step)
    name = found[1] or (names[0] if len(names) == 1 else "")
    if name not in names:
        step = f"write 'block NAME {found[2]}' with one of {', '.join(names)}"
        raise BadInputError(f"--what-if: which block: {name!r}?" if name else "--what-if: which block?", next_step=step)
    more = int(found[2])
    count = next(block.count for block in blocks if block.name == name)
    if count + more < 0:
        step = f"write 'block {name} -{count}' for none"
        raise BadInputError(f"--what-if 'block {text}': the block has {count}", next_step=step)
    after = tuple(
        replace(
            block,
            count=block.count + more,
            available=None if block.available is None else max(0, block.available + more),
        )
        if block.name == name
        else block
        for block in blocks
    )
    return replace(inputs, snapshot=replace(inputs.snapshot, blocks=after))


_CHANGES: Final[Mapping[str, Callable[[Inputs, str], Inputs]]] = {
    "region": _region,
    "price": _price,
    "without": _without,
    "block": _block,
}
