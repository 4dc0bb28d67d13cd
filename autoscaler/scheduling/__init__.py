"""kube-scheduler: the nodes that a pod fits (`filters.py`) and the one that it prefers (`scores.py`), one table each.

Pure functions of a `World`; dra/ decides the claims. The choice among equal nodes is a parameter of `schedule.py`.
"""
