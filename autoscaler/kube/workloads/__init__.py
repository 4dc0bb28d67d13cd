"""Workload controllers to the pods that they create."""
