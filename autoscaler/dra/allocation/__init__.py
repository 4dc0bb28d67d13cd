"""The search: requests, constraints, capacity, pruning, results, and the nearest miss."""
