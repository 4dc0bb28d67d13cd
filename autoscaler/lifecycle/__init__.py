"""What a node and a block go through. States move to what was observed; what to do next is decided in planning.

Each life is a table in one file; the diagrams in docs/lifecycle.md are drawn from the same tables.
"""
