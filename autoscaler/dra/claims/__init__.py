"""The ResourceClaims of a pod: references, PodGroups, extended resources, finished consumers."""
