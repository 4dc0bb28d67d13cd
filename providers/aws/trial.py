"""`foreslice aws trial`: starts a few machines on a real account for some minutes and checks EC2's behaviour.

It tests what no fake can show: whether a token finds its machines again, which tags and interfaces a machine has, how
long descriptions lag, what termination does. Every machine that carries the trial's tag is ended: at the end, after an
error or Ctrl-C, and before the next trial begins. A machine also ends itself after half an hour, since its user data
shuts it down and a shutdown ends it; it never joins the cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.aws.describe import listed, named, tags_of
from providers.aws.launch import Launcher
from providers.aws.node_template.network import interfaces
from providers.aws.node_template.template import NodeTemplate, UserData
from providers.aws.terminate import terminate
from providers.contract import TAG_BATCH, TAG_CLUSTER, LaunchAnswer, LaunchRequest, OfferingKey, TemplateRef
from providers.errors import ProviderError, RefusedError, TemplateError
from providers.trials import Outcome, without_secrets

TRIAL_TAG: Final = "foreslice.dev/trial"
# On-demand, spot, two of a gang, and one that a token might start again after its machine ended.
MACHINES: Final = 5
_SELF_END: Final = timedelta(minutes=30)
_USER_DATA: Final = f"#!/bin/sh\nshutdown -h +{int(_SELF_END.total_seconds() // 60)}\n"
_LOOK: Final = 2.0  # seconds between two looks
_LONGEST_LAG: Final = timedelta(minutes=5)
_LONGEST_END: Final = timedelta(minutes=10)
# After a lost answer a machine may turn up for so long.
_SETTLES: Final = timedelta(minutes=1)
_ENDED: Final = frozenset({"shutting-down", "terminated"})


@dataclass
class Trial:
    """A trial with one node template and one instance type. `outcomes` are the results so far, also after an error."""

    launcher: Launcher
    cluster: str
    template: NodeTemplate
    instance_type: str
    on_outcome: Callable[[Outcome], None] = lambda outcome: None
    outcomes: list[Outcome] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _lost: bool = False

    def __post_init__(self) -> None:
        self.template = replace(
            self.template,
            name=f"{self.template.name}-trial",
            user_data=UserData.CUSTOM,
            user_data_text=_USER_DATA,
            tags=FrozenMap({**self.template.tags, TRIAL_TAG: "true"}),
        )
        self._mark = f"{self.cluster} {self.launcher.clock.now().isoformat()}"

    def cost(self) -> Decimal:
        """The most that the trial may cost, in dollars: every machine for half an hour at the on-demand price.

        Raises TemplateError if the catalog has no price: nothing is bought without one.
        """
        known = self.launcher.catalog.types.get(self.instance_type)
        prices = [p.usd_per_hour for p in known.prices.values()] if known else []
        if not prices:
            step = "choose another type with --type, or set its price with an InstanceTypeOverlay or a catalog file"
            raise TemplateError(f"the price of {self.instance_type} is not known", next_step=step)
        hours = Decimal(int(_SELF_END.total_seconds())) / 3600
        return (max(prices) * MACHINES * hours).quantize(Decimal("0.01"))

    def run(self) -> None:
        """Runs all checks. Ends the machines that it started, after any error too."""
        self.clean()
        try:
            first = self._launched("on-demand", CapacityType.ON_DEMAND, 1)
            self._launched("spot", CapacityType.SPOT, 1)
            self._launched("gang of two", CapacityType.ON_DEMAND, 2)
            self._ending()
            if first is not None:
                self._used_token(first)
        finally:
            self.clean()
            self._forget_template()

    def clean(self) -> None:
        """End every machine of this and of earlier trials of the cluster, and see that they end."""
        began = self._monotonic()
        ended: set[str] = set()
        while True:
            waited = timedelta(seconds=self._monotonic() - began)
            trouble = ""
            try:
                shown = self._alive()
                if shown:
                    terminate(self.launcher.aws, self.cluster, sorted(shown))
                    ended |= shown
                if not self._unsettled(shown, waited):
                    break
            except ProviderError as error:
                trouble = f" ({error.message})"
            if waited > _LONGEST_END:
                left = ", ".join(sorted(ended | self._ids)) or "what carries its tag"
                step = f"look for the tag {TRIAL_TAG} in the EC2 console, and end what carries it"
                self._report(
                    "clean-up", f"EC2 does not say that these end: {left}{trouble}; {step}", began, passed=False
                )
                return
            self.launcher.clock.wait(_LOOK)
        self._ids.clear()
        self._lost = False
        if ended:
            self._report("clean-up", f"ended {', '.join(sorted(ended))}", began, passed=True)

    def _unsettled(self, shown: set[str], waited: timedelta) -> bool:
        """True if a machine may still run: one that is shown, one that was started and is not shown, or one of a lost
        answer."""
        if shown or (self._lost and waited < _SETTLES):
            return True
        states = {one["InstanceId"]: one["State"]["Name"] for one in named(self.launcher.aws, sorted(self._ids))}
        hidden = {key for key in self._ids if states.get(key) not in _ENDED}
        return bool(hidden) and waited < _LONGEST_LAG

    def _alive(self) -> set[str]:
        own = {TAG_CLUSTER: self.cluster, TRIAL_TAG: "true"}
        return {one["InstanceId"] for one in listed(self.launcher.aws, own) if one["State"]["Name"] not in _ENDED}

    # --- launches ------------------------------------------------------------------------------------------------

    def _launched(self, name: str, capacity_type: CapacityType, count: int) -> LaunchRequest | None:
        """Start machines in the first zone that has them, and look at them. The request that did; None: none could."""
        began, refused = self._monotonic(), "no subnet"
        for zone in sorted({subnet.zone for subnet in self.launcher.network.subnets(self.template)}):
            request = self._request(name, capacity_type, zone, count)
            with self._noting() as answered:
                answered.append(self.launcher.launch(request, self.template))
            if isinstance(answered[0], ProviderError):
                refused = answered[0].message
                continue
            answer = answered[0]
            if not answer.instances:
                refused = "; ".join(str(failure.error.message) for failure in answer.failures)
                continue
            ids = {machine.id for machine in answer.instances}
            self._ids |= ids
            whole = len(ids) == count
            what = f"{len(ids)} of {count} in {zone}: {', '.join(sorted(ids))}"
            self._report(f"{name}: launch", what, began, passed=whole)
            self._looked_at(name, request, answer)
            return request
        self._report(f"{name}: launch", f"no zone starts {self.instance_type}: {refused}", began, passed=False)
        return None

    def _request(self, name: str, capacity_type: CapacityType, zone: str, count: int) -> LaunchRequest:
        token = hashlib.sha256(f"{self._mark} {name} {zone}".encode()).hexdigest()
        return LaunchRequest(
            token=token,
            nodes=tuple(f"trial-{index}" for index in range(count)),
            offerings=(OfferingKey(self.instance_type, zone, capacity_type),),
            tags=FrozenMap({TAG_CLUSTER: self.cluster, TAG_BATCH: f"trial-{token[:8]}", TRIAL_TAG: "true"}),
            minimum=count,
            template=TemplateRef("AWSNodeTemplate", self.template.name),
        )

    def _looked_at(self, name: str, request: LaunchRequest, answer: LaunchAnswer) -> None:
        ids = {machine.id for machine in answer.instances}
        self._replayed(name, request, ids)
        began = self._monotonic()
        shown = self._shown(ids)
        if ids - shown.keys():
            hidden = ", ".join(sorted(ids - shown.keys()))
            self._report(f"{name}: describe", f"not shown after {_LONGEST_LAG}: {hidden}", began, passed=False)
            return
        self._report(f"{name}: describe", "all are shown with the trial's tags", began, passed=True)
        lacking = {
            key: sorted(set(request.tags.items()) - set(tags_of(one).items())) for key, one in sorted(shown.items())
        }
        wrong = {key: found for key, found in lacking.items() if found}
        self._report(f"{name}: tags", f"lacking: {wrong}" if wrong else "as asked for", began, passed=not wrong)
        wanted, found = self._wanted_interfaces(), {key: _layout(one) for key, one in sorted(shown.items())}
        same = all(one == wanted for one in found.values())
        self._report(
            f"{name}: interfaces", f"asked for {wanted}" + ("" if same else f", found {found}"), began, passed=same
        )
        markets = {one.get("InstanceLifecycle", "on-demand") for one in shown.values()}
        fits = markets == {request.offerings[0].capacity_type}
        self._report(f"{name}: market", ", ".join(sorted(markets)), began, passed=fits)
        if len(ids) > 1:
            subnets = {one.get("SubnetId", "") for one in shown.values()}
            self._report(f"{name}: one subnet", ", ".join(sorted(subnets)), began, passed=len(subnets) == 1)

    def _replayed(self, name: str, request: LaunchRequest, ids: set[str]) -> None:
        began = self._monotonic()
        with self._noting() as answered:
            answered.append(self.launcher.launch(request, self.template))
        if isinstance(answered[0], ProviderError):
            self._report(f"{name}: token again", answered[0].message, began, passed=False)
            return
        again = {machine.id for machine in answered[0].instances}
        self._ids |= again
        what = "the same machines" if again == ids else f"others: {', '.join(sorted(again - ids)) or 'none'}"
        self._report(f"{name}: token again", what, began, passed=again == ids)

    def _used_token(self, request: LaunchRequest) -> None:
        """Checks EC2's answer to a token whose machines have ended: it must start nothing."""
        began = self._monotonic()
        with self._noting() as answered:
            answered.append(self.launcher.launch(request, self.template))
        if isinstance(answered[0], ProviderError):
            code = answered[0].code or answered[0].kind
            self._report("token of ended machines", f"refused: {code}", began, passed=True)
            return
        ids = {machine.id for machine in answered[0].instances}
        self._ids |= ids
        states = {one["State"]["Name"] for one in named(self.launcher.aws, sorted(ids))}
        failures = ", ".join(failure.error.code or failure.error.kind for failure in answered[0].failures)
        fresh = bool(states - _ENDED)
        what = f"machines in state {'/'.join(sorted(states)) or 'none'}" + (f"; {failures}" if failures else "")
        self._report("token of ended machines", what, began, passed=not fresh)

    def _ending(self) -> None:
        """Ends all machines by id, and measures how long EC2 takes to report it."""
        ids, began = sorted(self._ids), self._monotonic()
        answer = terminate(self.launcher.aws, self.cluster, ids)
        refused = {key: error.message for key, error in sorted(answer.failures.items())}
        self._report("end", f"refused: {refused}" if refused else f"{len(ids)} machines", began, passed=not refused)
        while True:
            states = {one["State"]["Name"] for one in named(self.launcher.aws, ids)}
            waited = timedelta(seconds=self._monotonic() - began)
            if states <= {"terminated"} or waited > _LONGEST_END:
                break
            self.launcher.clock.wait(_LOOK)
        self._report(
            "ended", f"states: {'/'.join(sorted(states)) or 'none shown'}", began, passed=states <= {"terminated"}
        )

    # --- what EC2 shows ------------------------------------------------------------------------------------------

    def _shown(self, ids: set[str]) -> Mapping[str, Mapping[str, Any]]:
        own, began = {TAG_CLUSTER: self.cluster, TRIAL_TAG: "true"}, self._monotonic()
        while True:
            shown = {one["InstanceId"]: one for one in listed(self.launcher.aws, own) if one["InstanceId"] in ids}
            waited = timedelta(seconds=self._monotonic() - began)
            if shown.keys() == ids or waited > _LONGEST_LAG:
                return shown
            self.launcher.clock.wait(_LOOK)

    def _wanted_interfaces(self) -> list[tuple[int, int, str]]:
        known = self.launcher.catalog.types.get(self.instance_type)
        found = interfaces(known, self.template, ())
        return sorted((one["NetworkCardIndex"], one["DeviceIndex"], one["InterfaceType"]) for one in found)

    def _forget_template(self) -> None:
        began = self._monotonic()
        try:
            self.launcher.launch_templates.delete(self.template)
        except ProviderError as error:
            self._report("launch template", f"not deleted, and costs nothing: {error.message}", began, passed=None)

    @contextmanager
    def _noting(self) -> Iterator[list[Any]]:
        """Collects an answer, or the ProviderError instead. An error that is no refusal may hide machines."""
        answered: list[Any] = []
        try:
            yield answered
        except ProviderError as error:
            self._lost = self._lost or not isinstance(error, RefusedError)
            answered.append(error)
        except BaseException:
            self._lost = True
            raise

    def _report(self, name: str, message: str, began: float, *, passed: bool | None) -> None:
        outcome = Outcome(name, passed, without_secrets(message), round(self._monotonic() - began, 1))
        self.outcomes.append(outcome)
        self.on_outcome(outcome)

    def _monotonic(self) -> float:
        return self.launcher.clock.monotonic()


def _layout(found: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    rows: Iterable[Mapping[str, Any]] = found.get("NetworkInterfaces", ())
    attached = ((row.get("Attachment") or {}, row.get("InterfaceType", "interface")) for row in rows)
    return sorted((at.get("NetworkCardIndex", 0), at.get("DeviceIndex", 0), kind) for at, kind in attached)
