"""Provider adapters behind one contract: they rent machines. They know the catalog, not each other nor the
autoscaler."""
