"""Converts model values to the JSON of Kubernetes objects."""
