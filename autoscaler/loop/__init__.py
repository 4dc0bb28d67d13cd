"""One tick: reflect, decide, record, carry out, publish."""
