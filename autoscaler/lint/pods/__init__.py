"""What single pods say that a plan cannot serve or does not see: another cloud, nodes that a cloud makes itself."""
