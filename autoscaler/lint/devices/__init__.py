"""The distinct devices of the catalog and of nodes, and what selectors do on them within a bound on work."""
