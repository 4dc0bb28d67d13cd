"""Instance types, offerings and their Catalog; the resources of a machine that pods can use."""
