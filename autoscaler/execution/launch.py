"""Launches a LaunchBatch: one attempt for each of its offerings, in order.

Each attempt is recorded (with its token and a hash of its parameters) before the provider is called, and its answer
before anything else happens, so the process can die at any time. An attempt with an unknown result is repeated with
identical parameters until the result is known; only then another offering, perhaps in another zone, may be requested.
It is repeated in a later reconcile: a call may take a minute to time out, and leaving nodes do not wait for it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from autoscaler.cluster.intents import token_of
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.status_memory import Backoffs
from autoscaler.errors import ConfigurationError
from autoscaler.lifecycle.recreation import own_id
from autoscaler.model.provisioned_node import BatchMember, BatchOutcome, LaunchBatch, OfferingRef
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    TAG_POOL,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    Provider,
    TemplateRef,
)
from providers.errors import (
    AmbiguousError,
    CapacityError,
    GoneError,
    ProviderError,
    RefusedError,
    TokenReusedError,
    UnclassifiedError,
    WaitingError,
)
from providers.places import same_place


@dataclass(frozen=True, slots=True)
class Providers:
    """The providers by the kind of their node templates. `cluster` is the uid of the namespace kube-system."""

    by_template: Mapping[str, Provider]
    cluster: str

    def of(self, batch: LaunchBatch) -> Provider:
        """The provider of a batch; for a pool without a template the only provider, if there is just one."""
        kind = batch.template.kind
        if not kind and len(self.by_template) == 1:
            return next(iter(self.by_template.values()))
        if kind not in self.by_template:
            known = ", ".join(sorted(self.by_template))
            raise ConfigurationError(
                f"pool {batch.pool}: no provider for node template kind {kind!r}",
                next_step=f"set spec.nodeTemplateRef.kind to one of: {known}",
            )
        return self.by_template[kind]

    def named(self, name: str) -> Provider | None:
        return next((provider for provider in self.by_template.values() if provider.name == name), None)


class RepetitionRefusedError(AmbiguousError):
    """It is unknown what the previous call has launched: the provider refused to repeat it."""


def launch(batch: LaunchBatch, *, providers: Providers, journal: Journal, backoffs: Backoffs, now: datetime) -> None:
    """Carries a batch on, to machines or to failure.

    Raises UncertainError while the outcome of its call is unknown and ThrottledError while the provider is overloaded;
    then the same call is repeated, not before the error's back-off has passed. BusyError: it waits for another batch's
    call, and so does this one alone. WaitingError: the provider holds the request, which is recorded. RefusedError, for
    which a person has to correct something, is raised after everything else that was possible. RepetitionRefusedError:
    the outcome stays unknown.
    """
    provider = providers.of(batch)
    refusal: RefusedError | None = None
    while not batch.outcome.finished:
        repeated = batch.outcome is BatchOutcome.CALLING
        if batch.outcome is BatchOutcome.INTENDED and batch.deleting:
            give_up(batch, journal, now)
            return
        if batch.outcome is BatchOutcome.INTENDED:
            begun = _begin(batch, provider=provider, journal=journal, backoffs=backoffs, now=now)
            if begun is None:
                break
            batch = begun
        elif backoffs.paused(batch.pool, now):
            return
        elif not same_place(batch.place, provider.place()):
            # The token says nothing there: the same call would launch again.
            raise elsewhere(provider, batch.place, f"LaunchBatch {batch.name}")
        try:
            with _noted(batch, provider, journal=journal, backoffs=backoffs, now=now):
                answer = provider.launch(request_of(batch, cluster=providers.cluster))
                if repeated:
                    _raise_if_gone(answer)
        except TokenReusedError as error:
            # The token may have produced machines, and another one could double them. For a call that was repeated with
            # the template's current content, the provider's list shows what it launched.
            if repeated:
                raise _repetition_refused(error) from error
            raise
        except (RefusedError, CapacityError, GoneError) as error:
            # Raised perhaps before the call: a subnet that is full now, a group that changed.
            if repeated and not (isinstance(error, RefusedError) and error.settled):
                raise _repetition_refused(error) from error
            # Nothing was launched: the next offering may be asked for.
            refusal = refusal or (error if isinstance(error, RefusedError) else None)
            answer = LaunchAnswer(missing=wanted(batch))
        batch = answered(batch, answer, journal=journal, backoffs=backoffs, now=now)
    if refusal is not None:
        raise refusal


@contextmanager
def _noted(
    batch: LaunchBatch, provider: Provider, *, journal: Journal, backoffs: Backoffs, now: datetime
) -> Iterator[None]:
    """Around a launch: its error is recorded as the back-off of the next one, and raised again."""
    try:
        yield
    except WaitingError as error:
        # No back-off: other launches may wait beside it, each with a request of its own.
        if batch.waiting_since is None:
            journal.save_batch(replace(batch, waiting_since=error.since or now))
        raise
    except ProviderError as error:
        # Also one of a kind that this loop does not know: it may have launched, and the same call is repeated.
        backoffs.failed(batch.pool, batch.offerings[batch.attempt], error, now)
        raise
    except Exception as error:
        # A provider never raises this one: a bug, after which it is unknown what was launched.
        unknown = UnclassifiedError(f"{provider.name} failed unexpectedly: {type(error).__name__}")
        backoffs.failed(batch.pool, batch.offerings[batch.attempt], unknown, now)
        raise


def _repetition_refused(error: ProviderError) -> RepetitionRefusedError:
    text = f"a launch of unknown outcome was repeated and refused: {error.message}"
    return RepetitionRefusedError(text, code=error.code, next_step=error.next_step)


def _raise_if_gone(answer: LaunchAnswer) -> None:
    """Raises the error of a missing launch template. EC2 may report it before it looks at the token, so it is no
    evidence about an earlier call."""
    gone = [failure.error for failure in answer.failures if isinstance(failure.error, GoneError)]
    if gone and not answer.instances:
        raise gone[0]


def give_up(batch: LaunchBatch, journal: Journal, now: datetime) -> None:
    """Requests nothing more. Nodes without a machine have failed; a batch with a running call cannot be given up."""
    outcome = BatchOutcome.LAUNCHED if any(member.provider_id for member in batch.members) else BatchOutcome.FAILED
    _finish(replace(batch, outcome=outcome), journal, now)


def elsewhere(provider: Provider, place: str, what: str) -> ConfigurationError:
    """The provider calls another account or region than the one in which something was launched."""
    return ConfigurationError(
        f"provider {provider.name} calls {provider.place()} (account/region), and {what} was launched in {place}: "
        "nothing is concluded about machines, and nothing is launched or ended",
        next_step="restore the region and the credentials. If that account no longer exists, remove the finalizers "
        "foreslice.dev/machine and foreslice.dev/launch from its ProvisionedNodes and LaunchBatches",
    )


def request_of(batch: LaunchBatch, *, cluster: str) -> LaunchRequest:
    """The provider call of a batch's current attempt, derived from recorded data only."""
    offering = batch.offerings[batch.attempt]
    own = {labels.POOL: batch.pool, labels.CAPACITY_TYPE: offering.capacity_type.value}
    if offering.block:
        own[labels.CAPACITY_BLOCK] = offering.block
    return LaunchRequest(
        token=batch.token,
        nodes=wanted(batch),
        offerings=(key_of(offering),),
        tags=FrozenMap({TAG_CLUSTER: cluster, TAG_POOL: batch.pool, TAG_BATCH: batch.name}),
        minimum=min(batch.minimum, len(wanted(batch))),
        template=TemplateRef(*batch.template),
        labels=batch.labels.with_items(own),
        taints=batch.taints,
        kubelet_reserved=batch.kubelet_reserved,
        drivers=batch.prediction.drivers if batch.prediction else (),
    )


def ref_of(key: OfferingKey) -> OfferingRef:
    """A provider's offering, without the fields that a plan adds."""
    return OfferingRef(key.instance_type, key.zone, key.capacity_type, reservation=key.reservation)


def key_of(offering: OfferingRef) -> OfferingKey:
    """An offering as the provider's type."""
    return OfferingKey(offering.instance_type, offering.zone, offering.capacity_type, offering.reservation)


def _begin(
    batch: LaunchBatch, *, provider: Provider, journal: Journal, backoffs: Backoffs, now: datetime
) -> LaunchBatch | None:
    """Write the next attempt down: the first offering from `attempt` on without a back-off. None: none is left."""
    attempt = batch.attempt
    while attempt < len(batch.offerings) and backoffs.forbid(batch.pool, batch.offerings[attempt], now):
        attempt += 1
    if attempt >= len(batch.offerings):
        give_up(batch, journal, now)
        return None
    place = provider.place()
    asked = replace(batch, attempt=attempt, provider=provider.name, place=place, token=token_of(batch, attempt))
    parameters = repr(request_of(asked, cluster="-"))
    digest = hashlib.sha256(parameters.encode()).hexdigest()[:16]
    begun = journal.save_batch(replace(asked, outcome=BatchOutcome.CALLING, parameter_hash=digest))
    journal.begin(wanted(begun), now)
    return begun


def answered(
    batch: LaunchBatch, answer: LaunchAnswer, *, journal: Journal, backoffs: Backoffs, now: datetime
) -> LaunchBatch:
    """Saves the result of an attempt, back-offs and machines; then the next one may begin."""
    asked, members = batch.offerings[batch.attempt], members_with(batch, answer)
    if answer.instances:
        backoffs.succeeded(batch.pool, asked, now)
    complete = all(member.provider_id for member in members)
    for failure in answer.failures:
        backoffs.failed(batch.pool, asked, failure.error, now, also=tuple(map(ref_of, failure.also)))
    saved = replace(
        batch,
        members=members,
        answered=True,
        waiting_since=None,
        outcome=BatchOutcome.LAUNCHED if complete else BatchOutcome.INTENDED,
        attempt=batch.attempt if complete else batch.attempt + 1,
    )
    return _finish(saved, journal, now)


def members_with(batch: LaunchBatch, answer: LaunchAnswer) -> tuple[BatchMember, ...]:
    """The members of a batch, with the machines of an answer to its current attempt."""
    asked = batch.offerings[batch.attempt]
    machines = {instance.node: instance for instance in answer.instances}
    return tuple(
        replace(
            member,
            provider_id=machine.provider_id,
            instance_id=own_id(machine.provider_id, machine.id),
            obtained=asked,
        )
        if (machine := machines.get(member.node)) is not None
        else member
        for member in batch.members
    )


def _finish(batch: LaunchBatch, journal: Journal, now: datetime) -> LaunchBatch:
    saved = journal.save_batch(batch)
    journal.map_nodes(saved, now)
    return journal.settle(saved)


def wanted(batch: LaunchBatch) -> tuple[str, ...]:
    """The nodes of a batch that have no machine yet."""
    return tuple(member.node for member in batch.members if not member.provider_id)
