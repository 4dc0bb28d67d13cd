"""Shared parts of commands: options, output, errors, a cluster to read."""
