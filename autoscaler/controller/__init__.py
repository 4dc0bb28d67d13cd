"""The controller's thread: when it reconciles, what falls due, and who observes a reconcile."""
