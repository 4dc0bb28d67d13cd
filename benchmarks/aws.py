"""The AWS adapter over loopback HTTP: what describing a thousand instances takes, SDK and serialisation included.

python -m benchmarks.aws. The fake answers with one write, so the figures are boto3's and the adapter's own, not a
network's; EC2 itself adds its latency once a call.
"""

from __future__ import annotations

import statistics
import time

from autoscaler.clock import VirtualClock
from providers.aws.provider import Account, AwsProvider
from providers.aws.session import Aws
from providers.contract import TAG_CLUSTER, describe_all
from tests.aws import CLUSTER, Written, catalog, request
from tests.fakes.ec2 import FakeEc2, Server

INSTANCES = 1000
TARGET = 3.0  # seconds
_ROUNDS = 5
_BATCH = 100


def main() -> None:
    """Launch, describe, print."""
    fake = FakeEc2(VirtualClock(), rates_apply=False)  # a thousand launches would wait for EC2's request rates
    with Server(fake) as server:
        aws = Aws("us-east-1", endpoint=server.url, aws_access_key_id="AKIAFAKE", aws_secret_access_key="fake")
        provider = AwsProvider(Account(aws, fake.account.clock, catalog(), CLUSTER), Written())
        for batch in range(INSTANCES // _BATCH):
            nodes = tuple(f"b{batch}-{node}" for node in range(_BATCH))
            provider.launch(request(*nodes, batch=f"b{batch}"))
        before = fake.calls.total()
        seconds = []
        for _ in range(_ROUNDS):
            begin = time.perf_counter()
            found = list(describe_all(provider, {TAG_CLUSTER: CLUSTER}))
            seconds.append(time.perf_counter() - begin)
        calls = (fake.calls.total() - before) / _ROUNDS
    mark = "" if statistics.median(seconds) <= TARGET else "  above target"
    print(
        f"describe {len(found):,} instances: {statistics.median(seconds):.2f} s (slowest {max(seconds):.2f}, target "
        f"{TARGET:.0f}), {calls:.1f} calls{mark}"
    )


if __name__ == "__main__":
    main()
