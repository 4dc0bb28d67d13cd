"""Catalog entries from a cloud's listing and from nodes that run."""
