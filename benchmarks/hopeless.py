"""What thousands of pods that fit nowhere cost a pod beside them: CPU seconds and requests before its launch.

python -m benchmarks.hopeless [--pods 5000]. The loop is the controller's, with events written beside the reconciles;
the API server and the cloud are in memory, so a request costs microseconds where a network would take milliseconds: the
count of requests says what that would add.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

from autoscaler.cli.main import collect_rarely
from tests.crowd import Crowd

TARGET_SECONDS: Final = 2.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000, help="pods that fit nowhere")
    options = parser.parse_args()
    collect_rarely()  # as the controller does
    for pods in (0, options.pods):
        crowd = Crowd(pods)
        rounds = []
        for _ in range(2):
            began = time.process_time()
            crowd.loop.tick()
            rounds.append(time.process_time() - began)
        seconds = crowd.arrive()
        requests = sum(crowd.before_launch.values())
        mark = "" if seconds < TARGET_SECONDS else "  above target"
        print(
            f"{pods:>6} hopeless pods: first round {rounds[0]:.2f} s, next {rounds[1]:.2f} s; "
            f"launch of the good one after {seconds:.2f} s and {requests} writes; {len(crowd.events)} events wait{mark}"
        )


if __name__ == "__main__":
    main()
