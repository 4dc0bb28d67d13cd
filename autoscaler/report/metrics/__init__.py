"""Metrics: the table of all, their values after a tick, and the dashboard that shows them."""
