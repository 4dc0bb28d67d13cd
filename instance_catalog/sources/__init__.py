"""Catalog entries from a cloud's listing and from running nodes."""
