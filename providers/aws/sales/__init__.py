"""EC2's offers: listings, prices, Capacity Blocks on offer."""
