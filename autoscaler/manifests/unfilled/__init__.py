"""Values that templates and examples leave for users to fill in, searched in a whole file."""
