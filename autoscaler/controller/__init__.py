"""The controller's thread: when it ticks, what falls due, and who observes a tick."""
