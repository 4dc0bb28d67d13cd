"""`foreslice gcp trial`: starts a few machines of one group for some minutes, and tests each of Google's promises.

It tests what a fake cannot show: whether a group takes names that Foreslice chooses, whether a repetition finds them,
how old lists are, how machines end, and whether a name stays in the group. The machines belong to a cluster uid of
their own, so the controller does not adopt them. Every name of a trial is deleted: at the end, after an error or
Ctrl-C, and before the next trial begins, in whichever group it ran. Nothing else ends the machines of a trial that was
killed: they run, and cost money, until then. On GKE the machines join the cluster meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import GKE_TPU_TOPOLOGY
from providers.contract import TAG_BATCH, TAG_CLUSTER, LaunchAnswer, LaunchRequest, TemplateRef
from providers.errors import GoneError, ProviderError, TemplateError, UncertainError, WaitingError
from providers.gcp.describe import by_id, group_of, owned
from providers.gcp.describe import listed as machines
from providers.gcp.in_group.members import CHUNK, delete, listed
from providers.gcp.in_group.resize_requests import cancel, forget, open_of
from providers.gcp.in_group.tpu_slice import end
from providers.gcp.launch import Launcher
from providers.gcp.node_template.groups import Group, Groups, instead
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.node_template.tpu import topology_of
from providers.gcp.provider import WINDOW
from providers.gcp.terminate import terminate
from providers.trials import Outcome, without_secrets

# One machine, and a gang of two.
MACHINES: Final = 3
# The machines of a resize request.
QUEUED: Final = 2
# The cost is stated for this time, which is no limit: by then the trial is over or reports what is left, unless it was
# killed.
_LONGEST: Final = timedelta(hours=1)
_LOOK: Final = 2.0  # seconds between two reads
_LONGEST_LAUNCH: Final = timedelta(minutes=10)
_LONGEST_LAG: Final = timedelta(minutes=5)
_LONGEST_END: Final = timedelta(minutes=10)


def cluster_of_trials(cluster: str) -> str:
    """The owner of a trial's machines. The controller of the cluster ignores names with this owner."""
    return f"{cluster} trial"


def chosen_group(groups: Groups, template: GroupTemplate, instance_type: str, *, queued: bool) -> Group:
    """The first group of a template that a trial can use, with the given machine type if there is one.

    Raises the error of the first group that it cannot use, or a TemplateError that lists the machine types.
    """
    usable: list[Group] = []
    errors: list[ProviderError] = []
    for group, missing in groups.existing(template):
        error = missing or (_unfit(groups, template, group, queued=queued) if group is not None else None)
        if error is not None:
            errors.append(error)
        elif group is not None:
            usable.append(group)
    chosen = next((group for group in usable if instance_type in ("", group.instance_type)), None)
    if chosen is not None:
        return chosen
    if not usable and errors:
        raise errors[0]
    step = f"give --type with one that its groups start: {', '.join(sorted({one.instance_type for one in usable}))}"
    raise TemplateError(f"no group of GCPNodeTemplate {template.name} starts {instance_type}", next_step=step)


def _unfit(groups: Groups, template: GroupTemplate, group: Group, *, queued: bool) -> ProviderError | None:
    """The reason why a trial cannot use a group, which applies to launches in it as well; None if it can."""
    what = f"group {group.ref}"
    if group.unsupported:
        return TemplateError(f"{what}: {group.unsupported}", code=group.reason, next_step=instead(group))
    if group.reservation:
        step = "name a group of on-demand or Spot machines in the GCPNodeTemplate for the trial"
        return TemplateError(f"{what} starts its machines in {group.reservation}: no trial uses it up", next_step=step)
    if queued and group.domain:
        return TemplateError(f"{what} takes no resize requests (A4X)", next_step="leave --resize-requests out")
    if not queued and group.hosts > 1:
        return TemplateError(f"{what} is one TPU slice of {group.hosts} hosts", next_step="add --resize-requests")
    return groups.blocked(template, group)


@dataclass
class Trial:
    """A trial in one group. `launcher` is that of `cluster_of_trials`. `outcomes` are the results so far.

    `queued`: it tests resize requests, with two machines.
    """

    launcher: Launcher
    template: GroupTemplate
    group: Group
    usd_per_hour: Decimal | None
    on_outcome: Callable[[Outcome], None] = lambda outcome: None
    outcomes: list[Outcome] = field(default_factory=list)
    queued: bool = False

    def __post_init__(self) -> None:
        self._mark = f"{self.launcher.cluster} {self.launcher.clock.now().isoformat()}"

    def cost(self) -> Decimal:
        """The price of one hour of all machines, in dollars. Raises TemplateError if no price is known: nothing is
        bought on a guess."""
        if self.usd_per_hour is None:
            step = "choose another type with --type, or set its price with an InstanceTypeOverlay or a catalog file"
            raise TemplateError(f"the price of {self.group.instance_type} is not known", next_step=step)
        hours = Decimal(int(_LONGEST.total_seconds())) / 3600
        return (self.usd_per_hour * self.machines * hours).quantize(Decimal("0.01"))

    @property
    def machines(self) -> int:
        return self._queued if self.queued else MACHINES

    @property
    def _queued(self) -> int:
        """The number of machines of a resize request of the trial: two, or all hosts of a slice."""
        return self.group.hosts if self.group.hosts > 1 else QUEUED

    @property
    def proven(self) -> bool:
        """True if resize requests have done everything in this group that launches depend on."""
        return self.queued and bool(self.outcomes) and all(outcome.passed for outcome in self.outcomes)

    def run(self) -> None:
        """Run all steps. Deletes what it started, whatever error occurs."""
        self.clean()
        try:
            if self.queued:
                ids = self._launched("resize request", self._queued)
            else:
                ids = self._launched("one machine", 1) | self._launched("gang of two", 2)
            if ids:
                self._ending(ids)
            if ids and self.queued:
                self._withdrawing()
        finally:
            self.clean()

    def clean(self) -> None:
        """Delete every name of this trial and of earlier trials of the cluster in the project, and wait until they are
        gone."""
        began, deleted, trouble = self._monotonic(), set[str](), ""
        groups, searched = {self.group.ref}, False
        while True:
            waited = timedelta(seconds=self._monotonic() - began)
            try:
                for ref in groups:
                    self._cancel(ref)
                names = self._names(groups)
                for ref, found in names.items():
                    self._delete(ref, sorted(found - deleted))
                    deleted |= found
                if not searched:
                    groups, searched = groups | self._groups(), True
                    continue
                groups = set(names)  # other groups have no resize requests
                if not names:
                    break
            except ProviderError as error:
                trouble = f" ({error.message})"
            if waited > _LONGEST_END:
                ref = min(groups, key=str)
                step = f"gcloud compute instance-groups managed list-instances {ref.name} --zone "
                step += f"{ref.zone} shows them; delete them with delete-instances"
                self._report("clean-up", f"names of the trial are left{trouble}; {step}", began, passed=False)
                return
            self.launcher.clock.wait(_LOOK)
        if deleted:
            self._report("clean-up", f"deleted {', '.join(sorted(deleted))}", began, passed=True)

    def _cancel(self, group: GroupRef) -> None:
        """End the resize requests of trials in a group: a waiting request may start machines for weeks."""
        gcp, clock = self.launcher.gcp, self.launcher.clock
        try:
            found = tuple(open_of(gcp, group, self.launcher.cluster))
        except GoneError:
            return
        for one in found:
            key = f"trial {self._mark} {group} {one.name} {clock.now().isoformat()}"
            over = (
                one if not one.waits else cancel(gcp, clock, one, request_id=str(uuid5(NAMESPACE_URL, f"cancel {key}")))
            )
            if over is not None:
                forget(gcp, clock, over, request_id=str(uuid5(NAMESPACE_URL, f"forget {key}")))

    def _delete(self, group: GroupRef, going: Sequence[str]) -> None:
        launcher = self.launcher
        if going and launcher.groups.group(group).hosts > 1:
            key = f"trial {self._mark} {group} 0 {launcher.clock.now().isoformat()}"
            again = str(uuid5(NAMESPACE_URL, key))
            end(launcher.gcp, launcher.clock, group, going, cluster=launcher.cluster, request_id=again)
            return
        gcp, clock = launcher.gcp, launcher.clock
        waiting = {member.name for member in listed(gcp, group, launcher.cluster) if member.queued} if going else set()
        for queued in (False, True):
            alike = [name for name in going if (name in waiting) is queued]
            for start in range(0, len(alike), CHUNK):
                chunk = alike[start : start + CHUNK]
                key = f"trial {self._mark} {group} {' '.join(chunk)} {queued} {clock.now().isoformat()}"
                again = str(uuid5(NAMESPACE_URL, key))
                delete(gcp, clock, group, chunk, request_id=again, queued=queued)

    def _groups(self) -> set[GroupRef]:
        """The groups of the project that may have names of an earlier trial, which may have crashed in any of them.

        These are the groups of all machines of trials, and all groups that have members, since a name without a machine
        is in no list of machines.
        """
        gcp = self.launcher.gcp
        found = {ref for one in machines(gcp, self.launcher.cluster) if (ref := group_of(one)) is not None}
        for page in gcp.pages("instanceGroupManagers.aggregatedList"):
            for scoped in page.items.values():
                for one in scoped.instance_group_managers:
                    zone = one.zone.rpartition("/")[2]  # "" for a regional group, which templates cannot name
                    ref = GroupRef(zone, one.name)
                    holds = zone and any(open_of(gcp, ref, self.launcher.cluster))
                    if zone and (one.target_size or one.current_actions.deleting or holds):
                        found.add(ref)
        return found

    def _names(self, groups: Iterable[GroupRef]) -> dict[GroupRef, set[str]]:
        """The names in groups, with and without a machine, except those that a group is deleting already. Groups
        without names are left out."""
        found: dict[GroupRef, set[str]] = {}
        for ref in groups:
            try:
                names = {member.name for member in listed(self.launcher.gcp, ref, self.launcher.cluster)}
            except GoneError:
                continue  # a deleted group deletes its machines
            if names:
                found[ref] = names
        return found

    # --- launches ------------------------------------------------------------------------------------------------

    def _launched(self, name: str, count: int) -> set[str]:
        """Start machines, check them, and return their ids."""
        began, request = self._monotonic(), self._request(name, count)
        answer = self._answered(f"{name}: launch", request, began)
        if answer is None:
            return set()
        ids = {machine.id for machine in answer.instances}
        refused = "; ".join(failure.error.message for failure in answer.failures)
        what = f"{len(ids)} of {count} in {self.group.ref.zone}" + (f": {refused}" if refused else "")
        self._report(f"{name}: launch", what, began, passed=len(ids) == count)
        if not ids:
            return ids
        began = self._monotonic()
        again = self._answered(f"{name}: names again", request, began)
        if again is not None:
            same = {machine.id for machine in again.instances} == ids
            self._report(f"{name}: names again", "the same machines" if same else "other machines", began, passed=same)
        self._shown(name, ids)
        return ids

    def _answered(self, name: str, request: LaunchRequest, began: float) -> LaunchAnswer | None:
        """Launch like the controller: repeat the call unchanged while its outcome is unknown."""
        while True:
            try:
                return self.launcher.launch(request, self.template)
            except WaitingError as error:
                if timedelta(seconds=self._monotonic() - began) > _LONGEST_LAUNCH:
                    self._report(name, f"cancelled, since it still waits: {error.message}", began, passed=None)
                    return None
            except UncertainError as error:
                if timedelta(seconds=self._monotonic() - began) > _LONGEST_LAUNCH:
                    self._report(name, f"still unknown: {error.message}", began, passed=False)
                    return None
            except ProviderError as error:
                self._report(name, f"refused: {error.message}", began, passed=False)
                return None
            self.launcher.clock.wait(_LOOK)

    def _withdrawing(self) -> None:
        """Request two machines and cancel the request at once. The clean-up deletes machines that start
        nevertheless."""
        began, request = self._monotonic(), self._request("withdrawn", self._queued)
        with self._looking("withdraw", began):
            with suppress(WaitingError, UncertainError):
                self.launcher.launch(request, self.template)
            while True:
                try:
                    came = len(self.launcher.withdraw(request).instances)
                    break
                except UncertainError as error:
                    if timedelta(seconds=self._monotonic() - began) > _LONGEST_LAUNCH:
                        self._report("withdraw", f"it is not cancelled: {error.message}", began, passed=False)
                        return
                self.launcher.clock.wait(_LOOK)
            waits = self.launcher.waits(request)
            what = "it still waits" if waits else f"cancelled; {came} machines had started" if came else "cancelled"
            self._report("withdraw", what, began, passed=not waits)

    def _request(self, name: str, count: int) -> LaunchRequest:
        token = hashlib.sha256(f"{self._mark} {name}".encode()).hexdigest()
        return LaunchRequest(
            token=token,
            nodes=tuple(f"trial-{index}" for index in range(count)),
            offerings=(self.group.offering,),
            tags=FrozenMap({TAG_CLUSTER: self.launcher.cluster, TAG_BATCH: f"trial-{token[:8]}"}),
            minimum=count,
            template=TemplateRef("GCPNodeTemplate", self.template.name),
            labels=FrozenMap({GKE_TPU_TOPOLOGY: topology} if (topology := topology_of(self.group.labels)) else {}),
        )

    def _shown(self, name: str, ids: set[str]) -> None:
        began = self._monotonic()
        with self._looking(f"{name}: list", began):
            while True:
                found = {str(one.id) for one in machines(self.launcher.gcp, self.launcher.cluster)}
                if ids <= found or timedelta(seconds=self._monotonic() - began) > _LONGEST_LAG:
                    break
                self.launcher.clock.wait(_LOOK)
            whole = ids <= found
            late = timedelta(seconds=self._monotonic() - began) > WINDOW
            message = "all are listed, by their names" if whole else f"{len(ids - found)} are not listed"
            if whole and late:
                message += f"; the controller waits {WINDOW.seconds} seconds for that, and then treats them as lost"
            self._report(f"{name}: list", message, began, passed=whole and not late)

    def _ending(self, ids: set[str]) -> None:
        """End all machines by id, and check that no machine and no name is left."""
        began, gcp, cluster = self._monotonic(), self.launcher.gcp, self.launcher.cluster
        with self._looking("end", began):
            answer = terminate(gcp, self.launcher.clock, cluster, sorted(ids))
            refused = "; ".join(error.message for error in answer.failures.values())
            self._report("end", f"refused: {refused}" if refused else f"{len(ids)} machines", began, passed=not refused)
            while True:
                left = [one for one in by_id(gcp, sorted(ids)).values() if owned(one, cluster)]
                names = self._names([self.group.ref])
                if not (left or names) or timedelta(seconds=self._monotonic() - began) > _LONGEST_END:
                    break
                self.launcher.clock.wait(_LOOK)
            gone, names_left = not left and not names, sum(map(len, names.values()))
            message = "no machine and no name is left" if gone else f"{len(left)} machines, {names_left} names are left"
            self._report("ended", message, began, passed=gone)

    @contextmanager
    def _looking(self, name: str, began: float) -> Iterator[None]:
        try:
            yield
        except ProviderError as error:
            self._report(name, error.message, began, passed=None)

    def _report(self, name: str, message: str, began: float, *, passed: bool | None) -> None:
        text = without_secrets(message.replace(self.launcher.gcp.project, "(project)"))
        outcome = Outcome(name, passed, text, round(self._monotonic() - began, 1))
        self.outcomes.append(outcome)
        self.on_outcome(outcome)

    def _monotonic(self) -> float:
        return self.launcher.clock.monotonic()
