"""Workloads of projects that serve models."""
