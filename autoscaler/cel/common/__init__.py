"""What all stages share: syntax tree, types, values, the bound on work (cel-go: common/)."""
