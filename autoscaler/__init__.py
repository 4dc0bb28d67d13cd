"""The autoscaler: from pending claims to a plan, and from a plan to nodes. docs/architecture.md lists its packages."""
