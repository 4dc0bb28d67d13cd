"""Instance types, offerings and the Catalog of them; what of a machine pods can use."""
