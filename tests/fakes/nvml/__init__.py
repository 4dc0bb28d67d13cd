"""The fake libnvidia-ml: nvml.c, compiled once a session, and scenarios/*.txt, which it answers from."""
