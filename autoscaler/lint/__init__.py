"""Finds errors and surprises in claims and classes before a pod waits for them. Must not know files."""
