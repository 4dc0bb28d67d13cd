"""Converts workload objects to the pods that their controllers create."""
