"""Finds claims that match the same devices of a machine, however their selectors are written.

An allocation uses only the set of devices that a selector matches. So claims whose requests are equal except for
selectors, and that match the same devices of a machine, get the same result in every state of its devices: one answer
serves all of them. Devices are one class for a request if they are equal in all fields that its selectors read, so each
selector is evaluated once for a class, on any machine. Devices for which a selector is unknown are kept apart from
those that match and those that do not: a search passes over them, and its result depends on where they are. If an
answer is an error, claims are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Final

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, on_account
from autoscaler.dra.inventory.pools import PooledDevice
from autoscaler.dra.inventory.selectors import Answer, Path
from autoscaler.dra.outcome import FatalError
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, Request, ResourceClaim
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace

# The most devices of a machine: with more, a search of the first few is cheaper.
_MOST_DEVICES: Final = 64
# The number of kinds of claims at which they are compared on every machine.
_MANY: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Selection:
    """The DeviceClass and selectors of requests. `reads` are the fields that decide, once they are known."""

    request: DeviceRequest
    admits: dict[int, Answer | None] = field(default_factory=dict)  # by class of devices
    reads: list[frozenset[Path] | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Claims in two parts: a number for everything except the selectors, and the selection of each request."""

    rest: int
    selections: tuple[_Selection, ...]


class Requests:
    """Cached properties of claims in a plan; `classes` numbers devices that selectors cannot distinguish."""

    def __init__(self) -> None:
        self.classes: dict[Hashable, int] = {}
        self._selections: dict[Hashable, _Selection] = {}
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, _Asked | None] = {}

    def of(self, wants: int, claims: Sequence[ResourceClaim]) -> _Asked | None:
        """The claims in parts.

        None if there are none, or if they request amounts of devices: upstream's arithmetic depends on how these are
        written.
        """
        if wants not in self._known:
            self._known[wants] = self._read(claims)
        return self._known[wants]

    def _read(self, claims: Sequence[ResourceClaim]) -> _Asked | None:
        asked = [request for claim in claims for request in claim.exact_requests]
        if not asked or any(request.capacity for request in asked):
            return None
        rest = tuple(
            (
                claim.namespace,
                tuple(map(_unselective, claim.requests)),
                claim.constraints,
                claim.config,
                claim.unsupported,
            )
            for claim in claims
        )
        keys = [(one.device_class, one.selectors) for one in asked]
        selections = [self._selections.setdefault(k, _Selection(one)) for k, one in zip(keys, asked, strict=True)]
        return _Asked(self._numbers.setdefault(rest, len(self._numbers)), tuple(selections))


def _unselective(request: Request) -> Request:
    if isinstance(request, FirstAvailable):
        return replace(request, subrequests=tuple(replace(one, selectors=()) for one in request.subrequests))
    return replace(request, selectors=())


class Matching:
    """The matches of claims on the new node of one shape."""

    def __init__(self, node: Node, world: World, requests: Requests) -> None:
        self._node = node
        self._devices = world.devices
        self._requests = requests
        self._alike: dict[int, int] = {}
        self._first: dict[Hashable, int] = {}
        self._classes: dict[frozenset[Path], tuple[tuple[int, PooledDevice], ...]] = {}

    def known(self, wants: int, claims: Sequence[ResourceClaim]) -> int:
        """The first claims that match the same devices, as far as cached answers show; otherwise the claims
        themselves."""
        found = self._alike.get(wants)
        return self._worked_out(wants, claims, asks=False) if found is None else found

    def of(self, wants: int, claims: Sequence[ResourceClaim]) -> int:
        """The same, with all selectors evaluated. Raises BudgetSpentError."""
        found = self._alike.get(wants)
        return self._worked_out(wants, claims, asks=True) if found is None else found

    def _worked_out(self, wants: int, claims: Sequence[ResourceClaim], *, asks: bool) -> int:
        asked = self._requests.of(wants, claims)
        matched = [] if asked is None or not (self.comparable and self._few) else self._matched(asked, asks=asks)
        if matched is None:
            return wants
        alike = self._first.setdefault(tuple(matched), wants) if matched and None not in matched else wants
        self._alike[wants] = alike
        return alike

    def _matched(self, asked: _Asked, *, asks: bool) -> list[int | Answer | None] | None:
        """Everything in the claims that an allocation on the node can distinguish; it contains None if the claims
        are not compared. None if it is not known."""
        found: list[int | Answer | None] = [asked.rest]
        for selection in asked.selections:
            if not selection.reads:
                if not asks:
                    return None
                selection.reads.append(self.reads(selection.request))
            reads = selection.reads[0]
            if reads is None:
                return [None]
            for number, pooled in self.classes_by(reads):
                if number not in selection.admits:
                    if not asks:
                        return None
                    selection.admits[number] = self.admits(selection.request, pooled)
                found.append(selection.admits[number])
            found.append(len(found))
        return found

    def reads(self, request: DeviceRequest) -> frozenset[Path] | None:
        """The fields of devices that decide about the request; None if not known."""
        found = self._devices.classes.get(request.device_class)
        selectors = (*found.selectors, *request.selectors) if found is not None else ()
        expressions = [selector.expression for selector in selectors if selector.expression is not None]
        comparable = found is not None and len(expressions) == len(selectors)
        return self._devices.engine.reads(expressions) if comparable else None

    def admits(self, request: DeviceRequest, pooled: PooledDevice) -> Answer | None:
        """The answer for one device; None if it is an error."""
        _, memo = self._devices.pools_of(self._node)
        found = memo.matches(self._devices.classes[request.device_class], request).of(pooled)
        if Answer.ERROR in (found.certain, found.possible):
            return None
        return Answer.UNKNOWN if found.unknown else found.certain

    @cached_property
    def comparable(self) -> bool:
        """True if selectors read only fields of devices here."""
        try:
            pools, _ = self._devices.pools_of(self._node)
        except FatalError:
            return False
        return not any(
            d.unsupported or d.resource_slice.per_device_node_selection or d.device.binding_conditions
            for d in pools.devices
        )

    @cached_property
    def _few(self) -> bool:
        return len(self._devices.pools_of(self._node)[0].devices) <= _MOST_DEVICES

    def classes_by(self, reads: frozenset[Path]) -> tuple[tuple[int, PooledDevice], ...]:
        """The classes of the node's devices, each with its first device."""
        if reads not in self._classes:
            pools, _ = self._devices.pools_of(self._node)
            numbers, found = self._requests.classes, dict[int, PooledDevice]()
            for pooled in pools.devices:
                seen = self._devices.engine.seen(reads, driver=pooled.driver, device=pooled.device)
                one: Hashable = object() if seen is None else seen
                found.setdefault(numbers.setdefault(one, len(numbers)), pooled)
            self._classes[reads] = tuple(found.items())
        return self._classes[reads]


class Everywhere:
    """Claims that match the same devices on every machine: one answer serves all of them, on any machine.

    This is useful only if the `classes` have many different requests, because all selectors are evaluated for all
    devices.
    """

    def __init__(
        self, requests: Requests, classes: Sequence[BundleClass], machines: Callable[[], Sequence[Matching]]
    ) -> None:
        self._requests = requests
        self._asking = classes
        self._made = machines
        self._first: dict[Hashable, int] = {}
        self._classes: dict[frozenset[Path], dict[int, tuple[Matching, PooledDevice]]] = {}

    def number(self, wants: int, claims: Sequence[ResourceClaim], account: Account | None) -> int:
        """The first claims that match the same devices on all machines; otherwise, or if the account is spent or
        None, the claims themselves."""
        if account is None or not self._comparable:
            return wants
        try:
            with on_account(account):
                return self._of(wants, claims)
        except BudgetSpentError:
            return wants

    @cached_property
    def _machines(self) -> Sequence[Matching]:
        return self._made()

    @cached_property
    def _comparable(self) -> bool:
        many = len(self._asking) >= _MANY and len({found.wants for found in self._asking}) >= _MANY
        return many and bool(self._machines) and all(machine.comparable for machine in self._machines)

    def _of(self, wants: int, claims: Sequence[ResourceClaim]) -> int:
        asked, found = self._requests.of(wants, claims), list[Hashable]()
        for selection in asked.selections if asked else ():
            matched = self._matched(selection)
            if matched is None:
                return wants
            found.append(matched)
        return self._first.setdefault((asked.rest, *found), wants) if asked else wants

    def _matched(self, selection: _Selection) -> Hashable:
        """The fields that decide about devices, and the devices that match; None if the claims are not compared."""
        machines = self._machines
        if not selection.reads:
            selection.reads.append(machines[0].reads(selection.request))
        reads = selection.reads[0]
        if reads is None:
            return None
        if reads not in self._classes:
            every = (((n, (m, one)) for n, one in m.classes_by(reads)) for m in machines)
            self._classes[reads] = {number: place for found in every for number, place in found}
        for number, (machine, pooled) in self._classes[reads].items():
            if number not in selection.admits:
                selection.admits[number] = machine.admits(selection.request, pooled)
        admitted = tuple(selection.admits[number] for number in self._classes[reads])
        return None if None in admitted else (reads, admitted)
