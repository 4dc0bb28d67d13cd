"""A cloud in memory, on any clock: for the demo, the simulation and tests of a cloud's faults."""
