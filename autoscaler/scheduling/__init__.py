"""kube-scheduler: where pods may go (`filters.py`) and where they will (`scores.py`), one table each.

Pure functions of a `World`; dra/ decides the claims. Who is chosen among equals is a parameter of `schedule.py`.
"""
