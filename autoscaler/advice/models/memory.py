"""Models whose weights are larger than the GPUs that their pods get, and the GPUs that would hold them.

kube-scheduler knows no memory of GPUs: it puts the pod of a 32B model on a node with a T4 if that is all it asks for,
and so does a plan. The program then ends with an error, so nobody shall take such a plan for a working one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from decimal import Decimal
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_pods
from autoscaler.advice.models.shared import sharing_group
from autoscaler.lint.pods.card_names import whole_cards
from autoscaler.lint.pods.other_cards import OtherCard, replacing
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Fact
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import requiring
from autoscaler.planning.one_cloud import cost_of, plan_in_one_cloud
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes.labels import ACCELERATOR
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import Accelerator

_GPU_VENDORS: Final = ("NVIDIA", "AMD")
_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
_MOST_PODS: Final = 100  # of a plan that is made again
# What a program has of each GPU before it loads a weight, at the least: measured were 256 MiB on an RTX 3090 (PyTorch
# 2.7.1, invoke-ai/InvokeAI issue 9413), about 300 MB (pytorch/pytorch issue 107667) and 426 MiB on an RTX 6000 Ada
# (PyTorch 2.10, unslothai/unsloth-zoo pull request 1053). A bare context without kernels may have 128 MiB
# (invoke-ai/InvokeAI pull request 9447); that one with the kernels of a model has 256 MiB or more is inferred.
_CONTEXT: Final = 2**28
# The share of the memory that vLLM takes by default: gpu_memory_utilization in vllm/config/cache.py (main, 2026-11);
# 0.9 in earlier versions. Other servers take about as much.
_SHARE: Final = 0.92
# What a server needs of that on each GPU beside the weights: activations, of which vLLM measures 1.4 GiB for a 7B model
# (vllm-project/vllm issue 13882, 2025-02), and a KV cache for one long request. Llama 2 7B starts on 16 GB only with a
# larger share, half of its context and no CUDA graphs (issue 2248, 2024-03).
_ROOM: Final = 2**31
# The same of models that are published in 8 bits, DeepSeek-V3 and its like: 61 layers keep 576 values of 16 bits for
# each of 163,840 tokens on every GPU (config.json of deepseek-ai/DeepSeek-V3, read 2026-11).
_LATENT: Final = _ROOM + 61 * 576 * 2 * 163_840
# Of the compute capability that bfloat16 needs in vLLM (vllm-project/vllm issue 1157, 2023-09), and that vLLM itself
# does: 7.0 in its installation guide from 0.3.3 to 0.14, 7.5 since (0.21, both read 2026-11).
_BFLOAT16: Final = (8, 0)
_LEAST: Final = (7, 0)
# Of what the methods of quantisation need in vLLM: the table "Supported Hardware" on its page on quantization, 0.6.4 to
# 0.15.1 (read 2026-11). FP8 with 8.0 is weight-only (Marlin), FP8 W8A8 has 8.9. GPTQ, bitsandbytes and GGUF run on 7.0.
# Of models that are published in blocks of FP8: versions of vLLM that many run refuse them before Ada
# (vllm-project/vllm issues 13885 and 15336, 2025-03).
_FP8: Final = (8, 9)
_METHODS: Final = {
    "fp8": (8, 0),
    "marlin": (8, 0),
    "awq_marlin": (8, 0),
    "gptq_marlin": (8, 0),
    "awq": (7, 5),
    "gptq": (7, 0),
    "bitsandbytes": (7, 0),
    "gguf": (7, 0),
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod with a model, the container that names it, and the GPUs of all pods that share the weights. Each of them
    holds an equal part, so the smallest `card` of them decides."""

    pod: Pod
    container: Container
    card: Accelerator
    gpus: int
    own: int  # of these, its own
    sharing: tuple[str, ...] = ()  # the pods that have them, by key, where its own do not hold the weights alone

    @property
    def weights(self) -> float:
        """Bytes in the bits that the name of the model says, or with which it is published, or 16."""
        return (self.container.model_billions or 0) * 1e9 * self.container.model_bits / 8

    @property
    def share(self) -> float:
        """What a model server takes of the memory."""
        return self.container.memory_share or _SHARE

    def holds(self, card: Accelerator) -> bool:
        """True if the weights may have room on as many of these GPUs, in what a model server takes of their memory."""
        share = self.share if self.container.serves_model else 1
        return self.weights <= self.gpus * (share * _memory(card) - _CONTEXT)

    def has_room(self, card: Accelerator) -> bool:
        """True if they also leave what a model server needs, if it is one."""
        room = _LATENT if self.container.model_latent else _ROOM
        return self.holds(card) and (self.left(card, room) >= 0 or not self.container.serves_model)

    def left(self, card: Accelerator, room: int) -> float:
        """Bytes that a model server has beside the weights, if each GPU needs `room` for something else."""
        return self.gpus * (self.share * _memory(card) - room) - self.weights


@dataclass(frozen=True, slots=True)
class Holding:
    """The plan in which the pods select GPUs that hold their models: the accelerators, what it launches and costs."""

    accelerators: tuple[str, ...]
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes
    usd_per_hour: Decimal


@dataclass(frozen=True, slots=True)
class TooSmall:
    """Pods of a plan whose GPUs do not hold their models, or (not `surely`) hold them and leave a model server hardly
    any room: the first and how many there are, with those that share their weights, what the `weights` of its model
    take and what its GPUs `have`, in GiB, and what would hold all of them, where that was found; `accelerators`: that
    do, if no plan was made, the cheapest first with the price of a machine that has as many; None: no price is
    known."""

    pod: str
    pods: int
    billions: float
    weights: float
    gpus: str  # "2 × T4 of its group"
    have: float
    instead: Holding | None
    surely: bool = True
    bits: int = 16
    accelerators: tuple[tuple[str, Decimal | None], ...] = ()
    every: tuple[str, ...] = ()  # of these pods, by key
    share: float = 0  # of the memory, if an option says how much
    without_bfloat16: bool = False  # the GPUs lack it, and its vLLM may stop for that

    @property
    def memory(self) -> str:
        """What its GPUs have."""
        taken = f", of which its vLLM takes {self.share:g} (gpu-memory-utilization)" if self.share else ""
        return f"{'has' if self.gpus.startswith('1 ') else 'have'} {self.have:.0f}Gi{taken}"


def too_small(
    placed: Sequence[Placed], snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> Iterator[TooSmall]:
    """The `placed` pods whose GPUs surely have no room for the weights of the model that they name, and those of
    model servers that have hardly any beside them."""
    for found in _too_small(placed):
        holding = {key: _holding(one, catalog) for one in found for key in (*one.sharing, one.pod.key)}
        tried = all(holding.values()) and len(snapshot.pods) <= _MOST_PODS
        yield _finding(found, _tried(holding, snapshot, catalog, policy, now) if tried else None, ())


def unfit(plan: Plan, pods: Set[str], snapshot: Snapshot, catalog: Catalog) -> Iterator[TooSmall | TooOld]:
    """The same of some pods in a plan that is only an advice, and vLLM that stops: without a further plan."""
    if not any(pod.key in pods and (_of_model(pod) or _quantized(pod)) for pod in snapshot.pods):
        return
    placed = [one for one in placed_models(plan, snapshot, catalog) if one.pod.key in pods]
    for found in _too_small(placed):
        holding = [set(_holding(one, catalog)) for one in found]
        yield _finding(found, None, tuple(_cheapest_first(set.intersection(*holding), found[0].own, catalog)))
    if old := too_old(placed, catalog):
        yield old


def selecting(small: TooSmall, accelerators: Sequence[str]) -> Change:
    """The pods on these accelerators, which hold their models."""
    chosen = Requirement(ACCELERATOR, "In", tuple(accelerators))
    edit = on_pods(frozenset(small.every), lambda pod: requiring(pod, chosen))
    bits = f"{small.bits} bits{' unless they are quantised' if small.bits == 16 else ''}"
    facts: dict[str, Fact] = {"weights": f"{small.weights:.0f}Gi in {bits}", "gpus": small.gpus}
    facts["have"] = small.memory
    label = f"{ACCELERATOR}: {' or '.join(accelerators)}"
    return Change.of(
        ChangeKind.SELECT_HOLDING,
        f"pod {small.pod}{f' and {len(small.every) - 1} more' if len(small.every) > 1 else ''}",
        edit,
        label=label,
        **facts,
    )


def _too_small(placed: Sequence[Placed]) -> Iterator[list[Placed]]:
    """The pods whose GPUs do not hold the model, and those whose GPUs hardly do."""
    surely = [one for one in placed if not one.holds(one.card)]
    hardly = [one for one in placed if one.holds(one.card) and not one.has_room(one.card)]
    yield from filter(None, (surely, hardly))


def _cheapest_first(keys: Set[str], gpus: int, catalog: Catalog) -> list[tuple[str, Decimal | None]]:
    """The accelerators with the lowest list price on demand of a machine that has so many; without one, the last."""
    prices: dict[str, Decimal] = {}
    for one in catalog:
        key, price = one.accelerator.key if one.accelerator and not one.share else "", one.price
        if key in keys and price is not None and one.device_count >= gpus:
            prices[key] = min(price.usd_per_hour, prices.get(key, price.usd_per_hour))
    return sorted(
        ((key, prices.get(key)) for key in keys), key=lambda found: (found[1] is None, found[1] or 0, found[0])
    )


def _finding(
    found: Sequence[Placed], instead: Holding | None, accelerators: tuple[tuple[str, Decimal | None], ...]
) -> TooSmall:
    first = found[0]
    every = tuple(dict.fromkeys(key for one in found for key in (one.pod.key, *one.sharing)))
    return TooSmall(
        first.pod.key,
        len(every),
        first.container.model_billions or 0,
        first.weights / 2**30,
        f"{first.gpus} × {first.card.model}{' of its group' if first.gpus > first.own else ''}",
        first.gpus * _memory(first.card) / 2**30,
        instead,
        surely=not first.holds(first.card),
        bits=first.container.model_bits,
        accelerators=accelerators,
        every=every,
        share=first.container.memory_share if first.container.serves_model else 0,
        without_bfloat16=first.container.vllm_bfloat16 and _capability(first.card) < _BFLOAT16,
    )


@dataclass(frozen=True, slots=True)
class TooOld:
    """Pods of vLLM on GPUs without bfloat16: the first and how many there are, the GPU and its compute capability,
    whether vLLM `runs` on it at all, and the nearest GPUs that do it with as much memory (keys of accelerators). With a
    `method` of quantisation, that needs the GPU that it `wants`."""

    pod: str
    pods: int
    gpu: str
    capability: str  # "7.5"
    runs: bool
    instead: tuple[str, ...] = ()
    method: str = ""
    wants: str = ""


def too_old(placed: Sequence[Placed], catalog: Catalog) -> TooOld | None:
    """The `placed` pods whose vLLM stops if the model is published in bfloat16, without those that `too_small` sends to
    another GPU anyway."""
    found = [one for one in placed if _capability(one.card) < _needed(one.container) and one.has_room(one.card)]
    if not found:
        return None
    first = min(found, key=lambda one: _capability(one.card))
    number = _capability(first.card)
    method = first.container.quantization
    wanted = _METHODS.get(method, _LEAST)
    by_method = method if number < wanted else ""
    least = max(_needed(one.container) for one in found)
    meant = OtherCard(max(_memory(one.card) for one in found) // 10**9, least)
    instead = tuple(sorted({card.key for card in replacing(meant, whole_cards(catalog))}))
    shown, wants = (".".join(map(str, each)) for each in (number, wanted))
    return TooOld(
        *(first.pod.key, len(found), first.card.model, shown, number >= _LEAST, instead),
        method=by_method,
        wants=wants if by_method else "",
    )


def _needed(container: Container) -> tuple[int, int]:
    """The compute capability that its vLLM needs; (0, 0) where nothing is known of it."""
    bfloat16 = _BFLOAT16 if container.vllm_bfloat16 else (0, 0)
    return max(bfloat16, _METHODS.get(container.quantization, (0, 0)))


def _capability(card: Accelerator) -> tuple[int, ...]:
    """Major and minor of its compute capability; that of a new GPU where it is not known or there is none."""
    known = card.cuda_compute_capability
    return tuple(map(int, known.split(".")[:2])) if known else _BFLOAT16


def placed_models(plan: Plan, snapshot: Snapshot, catalog: Catalog) -> Iterator[Placed]:
    """The pods that the plan puts on GPUs and whose model is known."""
    pods = {pod.key: pod for pod in snapshot.pods}
    devices = {p.pod: sum(len(found.devices) for found in p.allocations.values()) for p in plan.placements}
    got: dict[str, tuple[Accelerator, int]] = {}
    for node in plan.launches:
        card = _card(node, catalog)
        if card is None:
            continue
        for key in node.pods:
            if key in pods and (number := devices.get(key, 0) or _requested(pods[key])):
                got[key] = card, number
    groups: dict[object, Counter[str]] = {}
    for key, (_, number) in got.items():
        groups.setdefault(sharing_group(pods[key]), Counter())[key] = number
    for key, (card, number) in got.items():
        container = _of_model(pods[key]) or _quantized(pods[key])
        if container is not None:
            group = groups[sharing_group(pods[key])]
            yield _among(Placed(pods[key], container, card, group.total(), number), group, got, pods)


def _among(
    placed: Placed, group: Mapping[str, int], got: Mapping[str, tuple[Accelerator, int]], pods: Mapping[str, Pod]
) -> Placed:
    """The pod with those that share its weights, if its own GPUs do not hold them: those that name no other model."""
    alone = replace(placed, gpus=placed.own).holds(placed.card) and not placed.container.model_spread
    if placed.gpus == placed.own or alone:
        return placed
    named = {key: _of_model(pods[key]) for key in group}
    size = placed.container.model_billions
    sharing = tuple(key for key, other in named.items() if other is None or other.model_billions == size)
    cards = (placed.card, *(got[key][0] for key in sharing))
    return replace(placed, card=min(cards, key=_memory), sharing=sharing)


def _card(node: PlannedNode, catalog: Catalog) -> Accelerator | None:
    """Its GPUs, where their memory is known."""
    machine = catalog.types.get(node.offering.instance_type)
    card = machine.accelerator if machine is not None and not machine.share else None
    return card if card is not None and card.vendor in _GPU_VENDORS and _memory(card) else None


def _memory(card: Accelerator) -> int:
    """Bytes, the most that it may have; 0 if that is not known."""
    known = card.memory or (card.memory_bounds[1] if card.memory_bounds else None) or card.api_memory
    return known.int64_value() if known is not None else 0


def _requested(pod: Pod) -> int:
    return sum(amount.int64_value() for one in pod.containers for amount in _gpus(one))


def _gpus(container: Container) -> list[Quantity]:
    return [amount for name, amount in container.requests.items() if name in _RESOURCES]


def _of_model(pod: Pod) -> Container | None:
    """Of its containers with GPUs that which names the largest model. One with a part of it counts only where the pods
    that have the rest are known. If none names one, a client in the pod says what the only server there has."""
    known = sharing_group(pod) != pod.key
    servers = [one for one in pod.containers if one.claims or _gpus(one)]
    named = (one for one in servers if one.model_billions is not None and (known or not one.model_spread))
    if (largest := max(named, key=lambda one: one.model_billions or 0, default=None)) is not None:
        return largest
    clients = [one for one in pod.containers if one.model_beside and one not in servers]
    if len(servers) != 1 or not clients or servers[0].quantized or servers[0].model_billions is not None:
        return None
    client = max(clients, key=lambda one: one.model_billions or 0)
    billions, bits, latent = client.model_billions or 0, client.model_bits, client.model_latent
    return replace(servers[0], model_billions=billions, model_bits=bits, model_latent=latent, serves_model=True)


def _quantized(pod: Pod) -> Container | None:
    """The container with GPUs whose vLLM quantises the model: how much memory that takes is not known."""
    return next((one for one in pod.containers if one.quantization and (one.claims or _gpus(one))), None)


def _holding(small: Placed, catalog: Catalog) -> tuple[str, ...]:
    """Keys of the accelerators of its vendor of which as many hold the weights, with room for what else it needs."""
    cards = {one.accelerator.key: one.accelerator for one in catalog if one.accelerator and not one.share}
    least = _BFLOAT16 if small.container.vllm_bfloat16 else (0, 0)
    least = max(least, _METHODS["fp8"]) if small.container.model_bits == 8 else least
    least = _FP8 if small.container.model_latent else least
    return tuple(
        sorted(
            key
            for key, card in cards.items()
            if card.vendor == small.card.vendor and small.has_room(card) and _capability(card) >= least
        )
    )


def _tried(
    holding: Mapping[str, tuple[str, ...]], snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> Holding | None:
    """The plan in which these pods select such GPUs; None where one of them gets no place then."""
    pods = tuple(
        requiring(pod, Requirement(ACCELERATOR, "In", holding[pod.key])) if pod.key in holding else pod
        for pod in snapshot.pods
    )
    quick = policy.only_answers()
    after, _ = plan_in_one_cloud(replace(snapshot, pods=pods), catalog, quick, now)
    cost, nodes = cost_of(after), {key: node for node in after.launches for key in node.pods}
    if cost is None or not holding.keys() <= nodes.keys():
        return None
    cards = (catalog.types[nodes[key].offering.instance_type].accelerator for key in holding)
    counts = Counter(node.offering.instance_type for node in after.launches)
    return Holding(tuple(dict.fromkeys(one.key for one in cards if one)), tuple(sorted(counts.items())), cost)
