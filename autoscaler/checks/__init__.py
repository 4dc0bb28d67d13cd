"""Checks before buying: that the nodes would work in this cluster, and that no other autoscaler launches for the same
pods."""
