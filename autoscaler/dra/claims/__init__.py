"""From a pod to its ResourceClaims: references, PodGroups, extended resources, finished consumers."""
