"""`foreslice blocks`: capacity blocks in the cluster, on offer, and bought."""
