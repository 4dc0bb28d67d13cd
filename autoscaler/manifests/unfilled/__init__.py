"""What templates and examples left for users to fill in, looked for in a whole file."""
