"""The seam to Kubernetes and what is kept behind it: store, journal, publish. State lives there and nowhere else."""
