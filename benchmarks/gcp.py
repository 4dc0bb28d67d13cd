"""The Google Cloud adapter over loopback HTTP: what describing a thousand instances takes, client and types included.

python -m benchmarks.gcp. The fake answers from memory, so the figures are the client's and the adapter's own, not a
network's; Compute Engine adds its latency once a page.
"""

from __future__ import annotations

import statistics
import time

from providers.contract import TAG_CLUSTER, describe_all
from tests.gcp import CLUSTER, Rig, request

INSTANCES = 1000
TARGET = 3.0  # seconds
_ROUNDS = 5
_BATCH = 100


def main() -> None:
    """Launch, describe, print."""
    rig = Rig()
    for batch in range(INSTANCES // _BATCH):
        nodes = tuple(f"b{batch}-{node}" for node in range(_BATCH))
        rig.provider.launch(request(*nodes, batch=f"b{batch}"))
    rig.settle()
    before = rig.fake.calls.total()
    seconds = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        found = list(describe_all(rig.provider, {TAG_CLUSTER: CLUSTER}))
        seconds.append(time.perf_counter() - begin)
    calls = (rig.fake.calls.total() - before) / _ROUNDS
    mark = "" if statistics.median(seconds) <= TARGET else "  above target"
    print(
        f"describe {len(found):,} instances: {statistics.median(seconds):.2f} s (slowest {max(seconds):.2f}, target "
        f"{TARGET:.0f}), {calls:.1f} calls{mark}"
    )


if __name__ == "__main__":
    main()
