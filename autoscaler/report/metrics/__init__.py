"""Metrics: the table of all, their values after a reconcile, and the dashboard that shows them."""
