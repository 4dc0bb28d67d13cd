"""Model values to the JSON of Kubernetes objects."""
