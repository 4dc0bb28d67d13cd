"""Computes a plan of least cost for pending pods, with a reason for every pod without a node. Pure: no I/O, no
clock, no randomness."""
