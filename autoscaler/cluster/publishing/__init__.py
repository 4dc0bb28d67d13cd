"""What the controller writes for people: Events, conditions, status of pools, blocks and templates."""
