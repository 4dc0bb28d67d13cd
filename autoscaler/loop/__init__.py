"""One reconcile: observe, decide, record, carry out, publish. `decision.py` is pure."""
