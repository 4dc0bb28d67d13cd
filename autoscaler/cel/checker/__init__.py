"""Types: declarations of one Kubernetes version, the checker, validation (cel-go: checker/)."""
