"""Requests of single pods that a plan cannot serve or does not see: another cloud, nodes that a cloud creates
itself."""
