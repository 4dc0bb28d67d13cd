"""What EC2 sells: listings, prices, Capacity Blocks on offer."""
