"""The devices of a snapshot: pools, counters, taints, allocations, and what a request may have."""
