"""One module for each DRA driver: the devices that it publishes on an instance type."""
