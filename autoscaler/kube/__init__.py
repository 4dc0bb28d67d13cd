"""Converts Kubernetes JSON to model values and back; no other package depends on the fields of API objects.

Converters are pure and total: any JSON value yields a model value, and everything unexpected about it is a `Problem`
with the field path inside the object. The package handles neither files nor clusters: positions come from manifests/,
objects from the callers.
"""
