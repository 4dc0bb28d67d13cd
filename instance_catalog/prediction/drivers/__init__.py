"""One module for each DRA driver: what it publishes on an instance type."""
