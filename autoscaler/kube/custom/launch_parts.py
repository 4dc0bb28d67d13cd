"""Common parts of ProvisionedNodes and LaunchBatches: offerings, predictions and reasons as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Annotated, Any

from pydantic import Field, JsonValue, WithJsonSchema

from autoscaler.kube.custom.schema import (
    NO_ENTRIES,
    ApiModel,
    CapacityTypeName,
    DollarsValue,
    Items,
    LongText,
    Text,
)
from autoscaler.model.provisioned_node import OfferingRef, Prediction
from autoscaler.model.reason import Code, Fact, Reason, Subject
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType

_CODES = {code.value: code for code in Code}


class OfferingSpec(ApiModel):
    """An offering, by name."""

    instance_type: Text
    zone: Text
    capacity_type: CapacityTypeName
    usd_per_hour: DollarsValue | None = None
    """The price at the time of the plan."""
    reservation: LongText = ""
    """The provider's id of the reservation."""
    block: LongText = ""
    """The CapacityBlock."""

    @cached_property
    def model(self) -> OfferingRef:
        """The offering of the plan."""
        price = None if self.usd_per_hour is None else Decimal(self.usd_per_hour)
        kind = CapacityType(self.capacity_type)
        return OfferingRef(self.instance_type, self.zone, kind, price, self.reservation, self.block)

    @staticmethod
    def of(offering: OfferingRef) -> OfferingSpec:
        price = offering.usd_per_hour
        return _offering_spec(offering, None if price is None else str(price))


@lru_cache(maxsize=512)
def _offering_spec(offering: OfferingRef, price: str | None) -> OfferingSpec:
    """Few offerings are written, each with many nodes. `price` as text: 1.5 and 1.50 are equal numbers."""
    return OfferingSpec.model_validate(
        {
            "instanceType": offering.instance_type,
            "zone": offering.zone,
            "capacityType": offering.capacity_type.value,
            "usdPerHour": price,
            "reservation": offering.reservation,
            "block": offering.block,
        }
    )


Offerings = Annotated[Items[OfferingSpec], Field(min_length=1, max_length=60)]


class PredictionSpec(ApiModel):
    """The prediction at the time of the plan; digests, not devices."""

    instance_type: Text
    drivers: Annotated[Items[Text], Field(max_length=16)] = ()
    catalog_digest: LongText = ""
    slices_digest: LongText = ""

    def model(self) -> Prediction:
        return Prediction(self.instance_type, self.drivers, self.catalog_digest, self.slices_digest)

    @staticmethod
    def of(prediction: Prediction) -> PredictionSpec:
        return PredictionSpec.model_validate(
            {
                "instanceType": prediction.instance_type,
                "drivers": prediction.drivers,
                "catalogDigest": prediction.catalog_digest,
                "slicesDigest": prediction.slices_digest,
            }
        )


class ReasonStatus(ApiModel):
    """One reason: a code, its subject, and its facts."""

    code: Text
    subject: LongText = ""
    detail: Annotated[
        dict[str, JsonValue], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    ] = NO_ENTRIES
    """Names and numbers that depend on the code."""


Reasons = Annotated[Items[ReasonStatus], Field(max_length=50)]


def reasons_model(reasons: Iterable[ReasonStatus]) -> tuple[Reason, ...]:
    """The reasons as model values. Codes of other versions are left out: nothing depends on them."""
    return tuple(
        Reason(_CODES[r.code], Subject.parse(r.subject), _facts(r.detail)) for r in reasons if r.code in _CODES
    )


def _facts(detail: Mapping[str, JsonValue]) -> FrozenMap[str, Fact]:
    facts: dict[str, Fact] = {}
    for name, value in detail.items():
        if isinstance(value, list):
            facts[name] = tuple(str(item) for item in value)
        elif isinstance(value, str | int | float):
            facts[name] = value
    return FrozenMap(facts)


def reasons_json(reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    """The reasons as JSON, at most as many as the schema allows."""
    return [
        {
            "code": reason.code.value,
            "subject": str(reason.subject),
            "detail": {k: list(v) if isinstance(v, tuple) else v for k, v in reason.detail.items()},
        }
        for reason in list(reasons)[:50]
    ]
