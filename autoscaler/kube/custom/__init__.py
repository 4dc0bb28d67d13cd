"""The kinds of the API group foreslice.dev/v1alpha1: their schema, and the conversion to and from model values.

Each kind is a pydantic model that holds JSON exactly as the API server stores it (texts for times, durations and
quantities), so that schema, defaults and manifests have one source. The core never uses these models: `parse_*` turns
an object into a frozen model value and `write_*` turns it back.
"""
