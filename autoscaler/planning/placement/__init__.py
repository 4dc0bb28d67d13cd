"""Pods onto nodes: those that exist, then candidates bought at least cost, checked by kube-scheduler's rules."""
