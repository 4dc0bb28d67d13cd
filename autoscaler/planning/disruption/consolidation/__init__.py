"""Moves running pods to where they cost less: which nodes are tried, what a move saves, and which answers stand."""
