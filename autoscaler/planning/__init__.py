"""From demand to a plan at least cost, with a reason for everything left out. Pure: no I/O, no clock, no randomness."""
