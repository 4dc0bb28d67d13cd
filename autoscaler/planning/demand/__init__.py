"""Finds the pending pods that need a new node, and groups those that belong together."""
