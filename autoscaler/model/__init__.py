"""Frozen values of the cluster, the input of the planner. No parsing, no I/O, no clock.

Every API object has an `Origin`, its source (a file and line, or the live cluster), which does not take part in
equality.
"""
