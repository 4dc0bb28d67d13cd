"""How is it rented? Provider adapters behind one contract; they know the catalog, not each other nor the autoscaler."""
