"""Writes the controller's output for users: Events, conditions, status of pools, blocks and templates."""
