"""What single pods say that a plan cannot serve or does not see: another cloud, the size of a model."""
