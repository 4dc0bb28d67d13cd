"""`foreslice aws`."""
