"""Finds the devices that kube-scheduler would give a claim on a node: structured allocation, one file per concept.

`allocator.allocate` is the entry point; `filter.filter_claims` does what the scheduler plugin DynamicResources does per
node. Nothing here depends on other needs of pods, prices, clouds or Kubernetes JSON.
"""
