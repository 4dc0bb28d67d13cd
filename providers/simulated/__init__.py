"""A cloud in memory, on any clock: for the demo, the simulation and every test of what a cloud may do to us."""
