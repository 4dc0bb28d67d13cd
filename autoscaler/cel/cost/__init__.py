"""Cost: the static estimate of a selector, and the cost of each call at run time."""
