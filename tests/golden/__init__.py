"""Recorded plans: what a user sees for every example."""
