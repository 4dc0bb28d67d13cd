"""`foreslice catalog`: one module for each subcommand."""
