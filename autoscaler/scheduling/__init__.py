"""kube-scheduler's predicates: where pods may go. `filters.py` is the table; dra/ decides the claims.

Pure functions of a `World`. Where pods *will* go among the nodes that fit depends on scores and is not decided here.
"""
