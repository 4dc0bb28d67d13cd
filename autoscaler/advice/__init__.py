"""The smallest change of manifests or pools that would place a pod, found by planning again. Pure."""
