"""Places pods on existing nodes, then on candidates that are bought at least cost, by kube-scheduler's rules."""
