"""Catalog files: schema, layers, merging, findings, and changes to their text."""
