"""Text to syntax tree: grammar, literals, macros (cel-go: parser/)."""
