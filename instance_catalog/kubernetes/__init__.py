"""Kubernetes' own vocabulary: quantities, labels, taints, node selectors, ResourceSlices, versions."""
