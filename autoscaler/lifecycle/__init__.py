"""The phases of nodes and blocks, moved to what was observed. planning/ decides what to do next.

Each life is a table in one file; the diagrams in docs/lifecycle.md are drawn from the same tables.
"""
