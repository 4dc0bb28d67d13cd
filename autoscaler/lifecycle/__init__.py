"""The phases of nodes and blocks, updated to the observed state. planning/ decides on the next actions.

Each life is a table in one file; docs/lifecycle.md is generated from the same tables.
"""
