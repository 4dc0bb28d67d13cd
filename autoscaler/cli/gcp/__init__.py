"""`foreslice gcp`."""
