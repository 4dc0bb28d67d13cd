"""Carries out what the journal contains: the only code that changes nodes and machines."""
