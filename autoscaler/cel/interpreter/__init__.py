"""Evaluation: the planner turns a checked tree into closures over a device (cel-go: interpreter/)."""
