"""What the process tells: logs, traces, metrics, health, and the status page."""
