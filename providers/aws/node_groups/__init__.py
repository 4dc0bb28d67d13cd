"""Auto-scaling groups and managed node groups as a provider."""
