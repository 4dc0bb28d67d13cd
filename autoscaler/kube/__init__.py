"""Kubernetes JSON to model values and back; nothing else knows what an API object looks like inside.

Converters are pure and total: any JSON value yields a model value, and everything surprising about it is a `Problem`
with the field path inside the object. The room knows neither files nor clusters: positions come from manifests/,
objects from whoever calls.
"""
