"""Which pending pods need a new node, and which of them belong together."""
