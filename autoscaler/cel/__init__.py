"""CEL device selectors as Kubernetes evaluates them: parse, check types, compile to closures, count cost.

This package depends on devices (instance_catalog) and Kubernetes profiles, and not on claims, pools or allocation. It
agrees with k8s.io/dynamic-resource-allocation/cel and the k8s.io/apiserver CEL libraries of the same release. The
compiled forms are immutable and may be evaluated by several threads.
"""
