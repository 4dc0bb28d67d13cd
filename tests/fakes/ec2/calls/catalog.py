"""What is sold and for how much: instance types, where they are offered, spot and list prices, quotas, profiles."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from instance_catalog.types.instance_type import CapacityType, InstanceType
from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import filtered, paged

_MEBIBYTE: Final = 1024 * 1024
_USAGE: Final = {
    CapacityType.ON_DEMAND: "on-demand",
    CapacityType.SPOT: "spot",
    CapacityType.CAPACITY_BLOCK: "capacity-block",
}
# What spot costs when a test does not say: a third of the list price.
_SPOT_SHARE: Final = Decimal("0.3333")


def describe_instance_types(account: Account, params: Params) -> Answer:
    """The types of the project's catalog, as EC2 describes hardware."""
    types = account.geography.types
    asked = params.get("InstanceTypes", ())
    for name in asked:
        if name not in types:
            raise ApiError("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]")
    known = [types[name] for name in asked] or list(types.values())
    found = filtered(known, params.get("Filters", ()), _TYPE_FIELDS, lambda one: {})
    page, token = paged(sorted(found, key=lambda t: t.name), params, key=lambda one: one.name, limit=100)
    return {"InstanceTypes": [_type(one) for one in page], "NextToken": token}


def describe_instance_type_offerings(account: Account, params: Params) -> Answer:
    """Types by zone, or by region."""
    location = params.get("LocationType", "region")
    if location not in ("region", "availability-zone"):
        raise ApiError("InvalidParameterValue", f"the fake lists types by region or availability-zone, not {location}")
    zones = account.geography.zones
    rows = [
        {"InstanceType": name, "LocationType": location, "Location": place}
        for name in sorted(account.geography.types)
        for place in (zones if location == "availability-zone" else [account.geography.region])
        if any(account.stock.offered(name, zone) for zone in (zones if place not in zones else [place]))
    ]
    fields: Mapping[str, Callable[[Mapping[str, str]], list[str]]] = {
        "instance-type": lambda row: [row["InstanceType"]],
        "location": lambda row: [row["Location"]],
    }
    found = filtered(rows, params.get("Filters", ()), fields, lambda row: {})
    page, token = paged(found, params, key=lambda row: f"{row['InstanceType']}/{row['Location']}")
    return {"InstanceTypeOfferings": page, "NextToken": token}


def describe_spot_price_history(account: Account, params: Params) -> Answer:
    """The price now, in every zone that sells the type."""
    types = account.geography.types
    asked = params.get("InstanceTypes") or sorted(types)
    rows = [
        {
            "InstanceType": name,
            "AvailabilityZone": zone,
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": price,
            "Timestamp": account.now,
        }
        for name in asked
        for zone in account.geography.zones
        if name in types and account.stock.offered(name, zone)
        if (price := _spot_price(account, types[name], zone)) is not None
    ]
    rows = [row for row in rows if params.get("AvailabilityZone", row["AvailabilityZone"]) == row["AvailabilityZone"]]
    page, token = paged(rows, params, key=lambda row: f"{row['InstanceType']}/{row['AvailabilityZone']}")
    return {"SpotPriceHistory": page, "NextToken": token}


def get_products(account: Account, params: Params) -> Answer:
    """The price list: one product for each type, with its on-demand term."""
    terms = {entry["Field"]: entry["Value"] for entry in params.get("Filters", ())}
    found = account.geography.types.get(terms.get("instanceType", ""))
    if found is None or found.price is None or terms.get("regionCode") != account.geography.region:
        return {"FormatVersion": "aws_v1", "PriceList": []}
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": str(found.price.usd_per_hour)}}
    product = {
        "product": {"attributes": terms},
        "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}},
    }
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product)]}


def list_service_quotas(account: Account, params: Params) -> Answer:
    """The vCPU quotas of accelerated machines."""
    if params["ServiceCode"] != "ec2":
        raise ApiError("NoSuchResourceException", f"the fake has no quotas of {params['ServiceCode']}")
    markets = {"on-demand": "Running On-Demand P instances", "spot": "All P Spot Instance Requests"}
    quotas = [
        {
            "ServiceCode": "ec2",
            "QuotaCode": code,
            "QuotaName": markets[market],
            "Value": float(limit if limit is not None else 10_000),
            "Adjustable": True,
        }
        for code, market in (("L-417A185B", "on-demand"), ("L-7212CCBC", "spot"))
        for limit in [account.stock.quota_of(market)]
    ]
    return {"Quotas": quotas}


def get_instance_profile(account: Account, params: Params) -> Answer:
    """A profile with one role of the same name."""
    name = params["InstanceProfileName"]
    if name not in account.geography.profiles:
        raise ApiError("NoSuchEntity", f"Instance Profile {name} cannot be found.", status=404)
    arn = f"arn:aws:iam::{account.geography.account}"
    role = {"Path": "/", "RoleName": name, "RoleId": "AROAFAKE", "Arn": f"{arn}:role/{name}", "CreateDate": account.now}
    profile = {
        "Path": "/",
        "InstanceProfileName": name,
        "InstanceProfileId": "AIPAFAKE",
        "Arn": f"{arn}:instance-profile/{name}",
        "CreateDate": account.now,
        "Roles": [role],
    }
    return {"InstanceProfile": profile}


def _spot_price(account: Account, found: InstanceType, zone: str) -> str | None:
    given = account.stock.spot_price_of(found.name, zone)
    if given is not None or CapacityType.SPOT not in found.capacity_types or found.price is None:
        return given
    return f"{found.price.usd_per_hour * _SPOT_SHARE:.6f}"


def _type(found: InstanceType) -> dict[str, Any]:
    efa = len(found.cards("efa"))
    return {
        "InstanceType": found.name,
        "CurrentGeneration": True,
        "SupportedUsageClasses": [_USAGE[kind] for kind in found.capacity_types if kind in _USAGE],
        "BareMetal": found.name.endswith(".metal"),
        "Hypervisor": "nitro",
        "ProcessorInfo": {"SupportedArchitectures": [{"amd64": "x86_64", "arm64": "arm64"}[found.architecture]]},
        "VCpuInfo": {"DefaultVCpus": found.vcpu},
        "MemoryInfo": {"SizeInMiB": int(found.memory.value) // _MEBIBYTE},
        "InstanceStorageSupported": bool(found.local_nvme_gb),
        "InstanceStorageInfo": {"TotalSizeInGB": found.local_nvme_gb} if found.local_nvme_gb else None,
        "NetworkInfo": {
            "NetworkPerformance": found.network,
            "MaximumNetworkCards": max(efa, 1),
            "EfaSupported": efa > 0,
            "EfaInfo": {"MaximumEfaInterfaces": efa} if efa else None,
        },
        **_accelerators(found),
    }


def _accelerators(found: InstanceType) -> dict[str, Any]:
    device = found.accelerator
    if device is None or device.api_memory is None:
        return {}
    size = int(device.api_memory.value) // _MEBIBYTE
    name, count = device.api_names.get("aws", device.model), found.device_count
    if device.vendor == "AWS":
        neuron = {"Count": count, "Name": name, "MemoryInfo": {"SizeInMiB": size}}
        return {"NeuronInfo": {"NeuronDevices": [neuron], "TotalNeuronDeviceMemoryInMiB": size * count}}
    gpu = {"Name": name, "Manufacturer": device.vendor, "Count": count, "MemoryInfo": {"SizeInMiB": size}}
    return {"GpuInfo": {"Gpus": [gpu], "TotalGpuMemoryInMiB": size * count}}


_TYPE_FIELDS: Final[Mapping[str, Callable[[InstanceType], list[str]]]] = {
    "instance-type": lambda one: [one.name],
    "supported-usage-class": lambda one: [_USAGE[kind] for kind in one.capacity_types if kind in _USAGE],
    "processor-info.supported-architecture": lambda one: [{"amd64": "x86_64", "arm64": "arm64"}[one.architecture]],
    "bare-metal": lambda one: ["true" if one.name.endswith(".metal") else "false"],
    "current-generation": lambda one: ["true"],
}
EC2: Final[Mapping[str, Operation]] = {
    "DescribeInstanceTypes": Operation(describe_instance_types, "InstanceTypes Filters MaxResults NextToken"),
    "DescribeInstanceTypeOfferings": Operation(
        describe_instance_type_offerings, "LocationType Filters MaxResults NextToken"
    ),
    "DescribeSpotPriceHistory": Operation(
        describe_spot_price_history,
        "InstanceTypes ProductDescriptions StartTime EndTime AvailabilityZone MaxResults NextToken",
    ),
}
PRICING: Final = {"GetProducts": Operation(get_products, "ServiceCode Filters FormatVersion NextToken MaxResults")}
QUOTAS: Final = {"ListServiceQuotas": Operation(list_service_quotas, "ServiceCode NextToken MaxResults")}
IAM: Final = {"GetInstanceProfile": Operation(get_instance_profile, "InstanceProfileName")}
