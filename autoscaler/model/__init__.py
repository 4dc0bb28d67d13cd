"""Frozen values of the cluster: what the planner sees. No parsing, no I/O, no clock.

Every API object carries an `Origin`, which says where it came from (a file and line, or the live cluster) and takes no
part in equality.
"""
