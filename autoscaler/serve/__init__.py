"""What the process shows: logs, traces, metrics, health, and the status page."""
