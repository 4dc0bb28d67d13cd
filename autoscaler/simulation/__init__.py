"""A cluster in memory on a virtual clock, under the production loop: the demo, what-if questions and tests."""
