"""Reads a GPU node: its hardware (read_nvml, read_host), its record, and the catalog entry made of it (entry)."""
