"""Checks of one object against the others: names without an object, and fields that only a patch may lack."""
