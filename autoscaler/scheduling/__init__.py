"""kube-scheduler: which nodes a pod fits (`filters.py`) and which one it prefers (`scores.py`), one table each.

Pure functions of a `World`; dra/ decides the claims. Who is chosen among equals is a parameter of `schedule.py`.
"""
