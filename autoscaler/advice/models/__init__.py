"""Models and the GPUs on which their servers start."""
