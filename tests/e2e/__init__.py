"""Tests against a real Kubernetes control plane, built from Go modules and run on loopback (`make e2e`)."""
