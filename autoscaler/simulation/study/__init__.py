"""`foreslice simulate`: workloads of days through the production loop in virtual time, under several policies."""
