"""Objects of other autoscalers in the same cluster."""
