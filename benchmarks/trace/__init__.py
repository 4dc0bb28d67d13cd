"""Public traces through the simulator."""
