"""Common parts of all stages: syntax tree, types, values, the limit on work (cel-go: common/)."""
