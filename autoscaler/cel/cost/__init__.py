"""Cost: the static estimate of a selector, and what each call costs at run time."""
