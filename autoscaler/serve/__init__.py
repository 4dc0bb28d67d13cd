"""The outputs of the process: logs, traces, metrics, health, and the status page."""
