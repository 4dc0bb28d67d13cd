"""Random DeviceClasses and ResourceClaims: those that ask, and those that were allocated earlier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random

from tests.oracle.cases.devices import CAPACITIES, DRIVERS, MODELS, PCIE_ROOT, TAINT_KEYS, VERSIONS
from tests.oracle.upstream import Json

_ATTRIBUTES = ("model", "gen", "numa", "ecc", "drv", "id")
# Selectors with @ for a domain. Those of the second line fail on devices that lack the attribute.
_GUARDED = (
    'device.driver == "@"',
    'has(device.attributes["@"].ecc) && device.attributes["@"].ecc == true',
    'device.attributes["@"].?model.orValue("") == "%m"',
    'device.attributes["@"].?gen.orValue(0) >= 2',
    'cel.bind(a, device.attributes["@"], !has(a.numa) || a.numa == 0)',
    'device.attributes["@"].exists(k, k == "gen")',
    '"memory" in device.capacity["@"] && device.capacity["@"].memory.compareTo(quantity("2Gi")) >= 0',
    'has(device.attributes["@"].drv) && device.attributes["@"].drv.compareTo(semver("%v")) >= 0',
    "device.allowMultipleAllocations == true",
    "device.allowMultipleAllocations == false",
    "true",
    "true",
    "false",
)
# Their answers tell values apart that are nearly equal.
_EXACT = (
    'has(device.attributes["@"].ecc) && device.attributes["@"].ecc == true',
    'device.attributes["@"].?gen.orValue(0) == 1',
    'device.attributes["@"].?numa.orValue(2) == 0',
    'device.attributes["@"].?numa.orValue(2) in [false, true]',
    'device.attributes["@"].?drv.orValue("") == "1.2.0"',
    'device.attributes["@"].size() == 5',
)
# How an amount is written shows here; only an API server makes it canonical.
_WRITTEN = (
    'device.capacity["@"].all(k, device.capacity["@"][k].isInteger())',
    '"memory" in device.capacity["@"] && device.capacity["@"].memory.isInteger()',
    '"connections" in device.capacity["@"] && device.capacity["@"].connections.asInteger() >= 1',
)
_LISTED = (
    'device.attributes["@"].?model.orValue("").includes("%m")',
    'device.attributes["@"].?gen.orValue(0).includes(1)',
    'device.attributes["@"].?drv.orValue("").includes(semver("%v"))',
)
_UNGUARDED = (
    'device.attributes["@"].model == "%m"',
    'device.attributes["@"].gen >= 2',
    'device.attributes["@"].ecc',
    'device.attributes["@"].drv.isGreaterThan(semver("%v"))',
    'device.capacity["@"].memory.isGreaterThan(quantity("1Gi"))',
    'device.driver == "@" && device.attributes["@"].numa == 1',
)
_AMOUNTS = ("1", "2", "3", "5", "500m", "1Gi", "2Gi", "3Gi", "1024Mi", "1.5Gi", "2G", "9", "20Gi")


class Demand:
    """Claims over the devices of `drivers`, which are named as often as they are to be asked for.

    With `stored`, upstream sees the objects as an API server stores them, so that selectors may ask how amounts are
    written. With `lists`, they may expect lists.
    """

    def __init__(self, rng: Random, drivers: Sequence[str], *, stored: bool = False, lists: bool = False) -> None:
        self._rng = rng
        self._drivers = drivers
        self._guarded = (*_GUARDED, *_EXACT * 2, *(_WRITTEN if stored else ()), *(_LISTED * 3 if lists else ()))
        self._shares = count()

    def classes(self) -> list[Json]:
        """A class per driver, one for anything and one with a selector that not every device survives."""
        found = [
            {"metadata": {"name": driver}, "spec": {"selectors": [_cel(f'device.driver == "{driver}"')]}}
            for driver in DRIVERS
        ]
        driver = self._driver()
        risky = [_cel(f'device.driver == "{driver}"'), self._selector(driver)]
        return [
            *found,
            {"metadata": {"name": "any"}, "spec": {}},
            {"metadata": {"name": "risky"}, "spec": {"selectors": risky}},
        ]

    def claim(self, name: str) -> Json:
        """A claim without allocation."""
        rng = self._rng
        requests = [self._request(f"r{index}") for index in range(rng.choice((1, 1, 1, 1, 2, 3)))]
        devices: Json = {"requests": requests}
        if rng.random() < 0.3:
            devices["constraints"] = [self._constraint(requests) for _ in range(rng.choice((1, 1, 2)))]
        return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}}

    def _driver(self, *, rather: str = "") -> str:
        """One of the drivers; mostly `rather`, so that what belongs together often fits."""
        return rather if rather in self._drivers and self._rng.random() < 0.85 else self._rng.choice(self._drivers)

    def _request(self, name: str) -> Json:
        if self._rng.random() < 0.2:
            alternatives = [self._exact() for _ in range(self._rng.choice((2, 2, 3)))]
            for index, exact in enumerate(alternatives):
                exact["name"] = f"s{index}"
                exact.pop("adminAccess", None)  # subrequests have no such field
            return {"name": name, "firstAvailable": alternatives}
        return {"name": name, "exactly": self._exact()}

    def _exact(self) -> Json:
        rng = self._rng
        driver = self._driver()
        device_class = rng.choices((driver, "any", "risky", "no-such-class"), (70, 24, 5, 0.3))[0]
        found: Json = {"deviceClassName": device_class}
        if rng.random() < 0.1:
            found["allocationMode"] = "All"
        else:
            found["allocationMode"] = "ExactCount"
            found["count"] = 33 if rng.random() < 0.004 else rng.choice((1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 6))
        if rng.random() < 0.35:
            found["selectors"] = [self._selector(driver) for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.08:
            found["adminAccess"] = rng.random() < 0.9
        if rng.random() < 0.25:
            found["tolerations"] = [self._toleration() for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.15:
            names = rng.sample(CAPACITIES, rng.choice((1, 1, 2)))
            if rng.random() < 0.04:
                names[0] = f"{self._driver()}/{names[0]}"
            found["capacity"] = {"requests": {name: self._wanted() for name in names}}
        return found

    def _wanted(self) -> str:
        return "-1" if self._rng.random() < 0.01 else self._rng.choice(_AMOUNTS)

    def _selector(self, driver: str) -> Json:
        templates = _UNGUARDED if self._rng.random() < 0.12 else self._guarded
        text = self._rng.choice(templates).replace("@", self._driver(rather=driver))
        return _cel(text.replace("%m", self._rng.choice(MODELS)).replace("%v", self._rng.choice(VERSIONS)))

    def _toleration(self) -> Json:
        rng = self._rng
        found: Json = {"operator": "Exists"}
        if rng.random() < 0.7:
            found["key"] = rng.choice(TAINT_KEYS)
            if rng.random() < 0.5:
                found = {"key": found["key"], "operator": "Equal", "value": rng.choice(("yes", "no"))}
        if rng.random() < 0.4:
            found["effect"] = rng.choice(("NoSchedule", "NoExecute"))
        return found

    def _constraint(self, requests: Sequence[Json]) -> Json:
        rng = self._rng
        asked = rng.choice(requests).get("exactly", {}).get("deviceClassName", "")
        domain = self._driver(rather=asked)
        attribute = PCIE_ROOT if rng.random() < 0.4 else f"{domain}/{rng.choice(_ATTRIBUTES)}"
        found: Json = {"matchAttribute" if rng.random() < 0.65 else "distinctAttribute": attribute}
        if rng.random() < 0.5:
            names = [request["name"] for request in requests]
            names += [f"{r['name']}/{s['name']}" for r in requests for s in r.get("firstAvailable", ())]
            found["requests"] = rng.sample(names, rng.randrange(1, len(names) + 1))
        return found

    # What was allocated before.

    def held(self, slices: Sequence[Json]) -> list[Json]:
        """Allocated claims that hold some devices of the slices, and rarely one that does not exist."""
        results = []
        for slice_ in slices:
            for device in slice_["spec"].get("devices", ()):
                shareable = device.get("allowMultipleAllocations", False)
                if self._rng.random() < (0.3 if shareable else 0.08):
                    results.append(self._result(slice_["spec"], device, shared=shareable))
        if results and self._rng.random() < 0.1:
            results.append({**results[-1], "device": "gone"})
        return [_allocated(f"held{index}", result) for index, result in enumerate(results)]

    def _result(self, spec: Json, device: Json, *, shared: bool) -> Json:
        rng = self._rng
        found = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
        if rng.random() < 0.05:
            return {**found, "adminAccess": True}
        if shared != (rng.random() < 0.05):  # a device may have changed since
            found["shareID"] = f"00000000-0000-0000-0000-{next(self._shares):012d}"
            if rng.random() < 0.95:
                consumed = {
                    name: rng.choice((amount["value"], *_AMOUNTS[:4], "1Gi"))
                    for name, amount in device.get("capacity", {}).items()
                }
                if consumed:  # an API server does not store an empty map, which upstream tells from none
                    found["consumedCapacity"] = consumed
        return found


def _allocated(name: str, result: Json) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def _cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}
