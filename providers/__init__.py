"""How is it rented? Provider adapters behind one contract; they know the catalog, never each other or the autoscaler."""
