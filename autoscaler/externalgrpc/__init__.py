"""Cluster Autoscaler's view of Foreslice, over gRPC: node groups, orders for the journal, and a choice of options."""
