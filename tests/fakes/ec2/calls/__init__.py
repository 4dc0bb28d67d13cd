"""The operations, by service: what a call reads and does. Everything about the wire is elsewhere."""
