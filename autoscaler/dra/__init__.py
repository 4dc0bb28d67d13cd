"""Which devices would kube-scheduler give a claim on a node? Structured allocation as values, one file per concept.

`allocator.allocate` is the way in; `filter.filter_claims` is what the scheduler plugin DynamicResources does per node.
Nothing here knows pods' other needs, prices, clouds or Kubernetes JSON.
"""
