"""Random ResourceSlices: pools of few devices with all that a driver may publish about them."""

from __future__ import annotations

from itertools import count
from random import Random

from tests.oracle.cases.near_equal import varied
from tests.oracle.upstream import Json

DRIVERS = ("gpu.example.com", "nic.example.com", "mig.example.com", "tpu.example.org")
MODELS = ("a100", "h100", "l4")
VERSIONS = ("1.0.0", "1.2.0", "1.2.0+b1", "2.0.0", "2.0.0-rc.1")
TAINT_KEYS = ("example.com/maintenance", "example.com/bad", "example.com/slow")
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
CAPACITIES = ("memory", "bandwidth", "connections")
_LISTS: tuple[Json, ...] = (
    *({"strings": list(found)} for found in (("a100",), ("a100", "h100"), ("h100", "a100"), ("pci0", "pci1"))),
    *({"ints": list(found)} for found in ((1,), (1, 2), (2, 1), (0, 3))),
    *({"bools": list(found)} for found in ((True,), (False,), (True, False))),
    *({"versions": list(found)} for found in (("1.0.0",), ("1.2.0", "1.2.0+b1"), ("2.0.0", "1.0.0"))),
)
NODES = ("node-a", "node-b", "node-z")
# name of the partition, its share of the parent's memory and cores in quarters, how many of it a parent has
_PARTITIONS = (("full", 4, 1), ("half", 2, 2), ("quarter", 1, 4))


class Supply:
    """The devices of one case, seen from `node`."""

    def __init__(self, rng: Random, *, lists: bool = False) -> None:
        self._rng = rng
        self._lists = lists
        self._names = count()
        name = rng.choice(NODES[:2])
        labels = {"kubernetes.io/hostname": name, "zone": rng.choice(("z1", "z2")), "slot": rng.choice(("1", "12"))}
        if rng.random() < 0.7:
            labels["rack"] = rng.choice(("r1", "r2"))
        self.node: Json = {"metadata": {"name": name, "labels": labels}}

    def pool(self, index: int) -> list[Json]:
        """The slices of one pool; now and then one is missing, outdated or wrong."""
        rng = self._rng
        driver = rng.choice(DRIVERS)
        name = rng.choice((f"p{index}", f"p{index}", self._node_name, "shared"))
        reach = self._reach()
        partitioned = rng.random() < 0.25
        devices = self._partitions(driver) if partitioned else self._devices(driver)
        if "perDeviceNodeSelection" in reach:
            for device in devices:
                device.update(self._own_reach())
        parts = self._split(devices)
        bodies: list[Json] = [{"devices": part} for part in parts]
        if partitioned:
            bodies.append({"sharedCounters": self._counter_sets})
        if rng.random() < 0.02 and devices:
            bodies[0]["devices"].append({**rng.choice(devices)})  # a duplicate name makes the pool invalid
        generation = rng.choice((1, 1, 2))
        missing = rng.random() < 0.04
        declared = {"name": name, "generation": generation, "resourceSliceCount": len(bodies) + missing}
        slices = [self._slice(driver, declared, reach, body) for body in bodies]
        if rng.random() < 0.1:
            self._age(slices, declared)
        if len(slices) > 1 and rng.random() < 0.1 and "perDeviceNodeSelection" not in reach:
            other = rng.choice(slices)  # a pool that spans nodes
            for field in reach:
                other["spec"].pop(field, None)
            other["spec"]["nodeName"] = rng.choice(NODES)
        return slices

    @property
    def _node_name(self) -> str:
        name: str = self.node["metadata"]["name"]
        return name

    def _slice(self, driver: str, pool: Json, reach: Json, body: Json) -> Json:
        name = f"s{next(self._names)}" if self._rng.random() < 0.7 else f"s-{self._rng.randrange(10**6)}"
        return {"metadata": {"name": name}, "spec": {"driver": driver, "pool": dict(pool), **reach, **body}}

    def _age(self, slices: list[Json], declared: Json) -> None:
        """Some slices are of an older generation, or there is one more that nobody else knows of."""
        aged = self._rng.choice(slices)
        if self._rng.random() < 0.5:
            aged["spec"]["pool"]["generation"] = declared["generation"] + self._rng.choice((-1, 1))
        else:
            driver = aged["spec"]["driver"]
            newer = {**declared, "generation": declared["generation"] + 1, "resourceSliceCount": 1}
            reach = {"nodeName": self._rng.choice(NODES)}
            slices.append(self._slice(driver, newer, reach, {"devices": self._devices(driver)[:1]}))

    def _split(self, devices: list[Json]) -> list[list[Json]]:
        if len(devices) < 2 or self._rng.random() < 0.6:
            return [devices]
        cut = self._rng.randrange(1, len(devices))
        return [devices[:cut], devices[cut:]]

    # Where devices can be used.

    def _reach(self) -> Json:
        draw = self._rng.random()
        if draw < 0.55:
            return {"nodeName": self._node_name}
        if draw < 0.60:
            return {"nodeName": self._rng.choice(NODES)}
        if draw < 0.73:
            return {"allNodes": True}
        if draw < 0.86:
            return {"nodeSelector": self._node_selector()}
        return {"perDeviceNodeSelection": True}

    def _own_reach(self) -> Json:
        options: tuple[Json, ...] = (
            {"nodeName": self._node_name},
            {"nodeName": self._node_name},
            {"nodeName": self._rng.choice(NODES)},
            {"allNodes": True},
            {"nodeSelector": self._node_selector()},
        )
        return self._rng.choice(options)

    def _node_selector(self) -> Json:
        """One term, as the API demands."""
        rng = self._rng
        requirements: list[Json] = [
            {"key": "zone", "operator": "In", "values": rng.choice((["z1"], ["z1", "z2"], ["z2"]))},
            {"key": "zone", "operator": "NotIn", "values": ["z1"]},
            {"key": "rack", "operator": rng.choice(("Exists", "DoesNotExist"))},
            {"key": "rack", "operator": "NotIn", "values": ["r1"]},
            {"key": "slot", "operator": rng.choice(("Gt", "Lt")), "values": [rng.choice(("0", "5", "100"))]},
            {"key": "rack", "operator": "Gt", "values": ["5"]},
        ]
        term: Json = {"matchExpressions": rng.sample(requirements, rng.choice((1, 1, 2)))}
        if rng.random() < 0.15:
            fields = {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": [self._node_name]}
            term = {"matchFields": [fields]} if rng.random() < 0.5 else {**term, "matchFields": [fields]}
        return {"nodeSelectorTerms": [term]}

    # What devices are.

    def _devices(self, driver: str) -> list[Json]:
        rng = self._rng
        shareable = rng.random() < 0.3
        model = rng.choice(MODELS)
        alike = rng.random()  # equal devices are what searches drown in, nearly equal ones what is taken for another
        devices: list[Json] = []
        for index in range(rng.choice((1, 2, 3, 4, 5, 6, 7))):
            device = self._device(driver, f"dev{index}", model=model, shareable=shareable and rng.random() < 0.8)
            if devices and alike < 0.65 and rng.random() < 0.8:
                device = devices[-1] if alike < 0.3 else self._twin(driver, devices[-1])
                device = {**device, "name": f"dev{index}"}
            devices.append(device)
        return devices

    def _twin(self, driver: str, device: Json) -> Json:
        """A device that is nearly the same."""
        found = varied(self._rng, {**device, "driver": driver}, DRIVERS[:2], lists=self._lists)
        if not found.pop("allowMultipleAllocations", False) and "allowMultipleAllocations" in device:
            found["allowMultipleAllocations"] = False
        elif device.get("allowMultipleAllocations"):
            found["allowMultipleAllocations"] = True  # only those have policies
        del found["driver"]
        return found

    def _device(self, driver: str, name: str, *, model: str, shareable: bool = False) -> Json:
        rng = self._rng
        attributes: Json = {
            "model": {"string": rng.choice((model, model, *MODELS))},
            "gen": {"int": rng.choice((1, 1, 2, 3))},
            "numa": {"int": rng.choice((0, 1))},
            "ecc": {"bool": rng.random() < 0.7},
            "drv": {"version": rng.choice(VERSIONS)},
            **({"id": {"string": name}} if rng.random() < 0.25 else {}),  # not every driver publishes one
            PCIE_ROOT: {"string": rng.choice(("pci0", "pci0", "pci1"))},
        }
        for key in list(attributes):
            draw = rng.random()
            if draw < 0.08:
                del attributes[key]
            elif draw < 0.2 and "/" not in key:
                attributes[f"{driver}/{key}"] = attributes.pop(key)
            elif draw < 0.225:
                attributes[key] = rng.choice(({"int": 1}, {"string": "1"}, {"bool": True}, {"version": "1.0.0"}))
        if self._lists:
            for key in rng.sample(list(attributes), min(len(attributes), rng.choice((0, 1, 2, 2)))):
                attributes[key] = rng.choice(_LISTS)
        if rng.random() < 0.004:
            attributes["names"] = rng.choice(({"strings": ["a", "b"]}, {"ints": [1, 2]}, {"versions": ["1.0.0"]}))
        device: Json = {"name": name, "attributes": attributes, "capacity": self._capacities(shareable)}
        if shareable:
            device["allowMultipleAllocations"] = True
        elif rng.random() < 0.05:
            device["allowMultipleAllocations"] = False
        if rng.random() < 0.12:
            device["taints"] = [self._taint() for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.06:
            device["bindingConditions"] = ["example.com/ready"]
            device["bindingFailureConditions"] = ["example.com/failed"]
        if rng.random() < 0.04:
            device["bindsToNode"] = True
        return device

    def _taint(self) -> Json:
        taint = {
            "key": self._rng.choice(TAINT_KEYS),
            "effect": self._rng.choice(("NoSchedule", "NoSchedule", "NoExecute", "None")),
        }
        return {**taint, "value": "yes"} if self._rng.random() < 0.5 else taint

    def _capacities(self, shareable: bool) -> Json:
        found: Json = {}
        for name in CAPACITIES:
            if self._rng.random() < 0.65:
                found[name] = self._policed() if shareable and self._rng.random() < 0.7 else self._amount()
        return found

    def _amount(self) -> Json:
        return {
            "value": self._rng.choice(("1", "2", "4", "10", "500m", "1Gi", "8Gi", "16384Mi", "1.5Gi", "4G", "80Gi"))
        }

    def _policed(self) -> Json:
        """A capacity with a policy that API validation accepts: everything is a whole number of one unit."""
        rng = self._rng
        unit = rng.choice(("", "", "Gi", "Gi", "Mi", "G", "k"))
        total = rng.choice((4, 8, 10, 16))
        policy: Json = {}
        draw = rng.random()
        if draw < 0.3:
            values = sorted(rng.sample(range(1, total + 1), rng.choice((1, 2, 3))))
            policy = {"validValues": [f"{value}{unit}" for value in values], "default": f"{rng.choice(values)}{unit}"}
        elif draw < 0.85:
            low = rng.choice((0, 1, 2))
            limits = {"min": f"{low}{unit}"}
            step = rng.choice((None, 1, 2))
            high = rng.randrange(low + (step or 1), total + 1)
            if rng.random() < 0.6:
                high -= (high - low) % (step or 1)
                limits["max"] = f"{high}{unit}"
            if step is not None:
                limits["step"] = f"{step}{unit}"
            default = rng.randrange(low, high + 1, step or 1)
            policy = {"validRange": limits, "default": f"{default}{unit}"}
        else:
            policy = {"default": f"{rng.randrange(1, total + 1)}{unit}"}
        return {"value": f"{total}{unit}", "requestPolicy": policy}

    def _partitions(self, driver: str) -> list[Json]:
        """Devices that share counters, as the slices of a GPU do; sets `_counter_sets`."""
        rng = self._rng
        self._counter_sets: list[Json] = []
        devices: list[Json] = []
        mine: list[Json] = []
        alike = rng.random() < 0.5  # equal GPUs, whose partitions differ in nothing but the names of their counter sets
        for parent in range(rng.choice((1, 1, 2, 2, 3))):
            name = f"set{parent}"
            if not mine or not alike:
                mine = self._parts(driver)
                counters = {"memory": {"value": "40Gi"}, "cores": {"value": rng.choice(("4", "4", "3"))}}
            self._counter_sets.append({"name": name, "counters": counters})
            for part in mine:
                drawn = [{"counterSet": name, "counters": part["drawn"]}]
                if parent and rng.random() < 0.03:
                    drawn.append({"counterSet": "set0", "counters": {"cores": {"value": "1"}}})
                devices.append({**part["device"], "name": f"{name}-{part['name']}", "consumesCounters": drawn})
        rng.shuffle(devices)
        if devices and rng.random() < 0.05:
            devices[0]["consumesCounters"][0]["counterSet"] = "no-such-set"
        return devices

    def _parts(self, driver: str) -> list[Json]:
        """The partitions of one GPU: their names, what they draw, and the devices."""
        rng = self._rng
        found: list[Json] = []
        for partition, quarters, most in _PARTITIONS:
            for index in range(rng.randrange(most + 1)):
                name = f"{partition}{index}"
                device = self._device(driver, name, model="a100", shareable=rng.random() < 0.1)
                drawn = {"memory": {"value": f"{quarters * 10}Gi"}, "cores": {"value": str(quarters)}}
                if rng.random() < 0.2:
                    drawn.pop(rng.choice(tuple(drawn)))
                found.append({"name": name, "drawn": drawn, "device": device})
        return found
