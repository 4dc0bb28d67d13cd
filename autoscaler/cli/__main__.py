"""`python -m autoscaler.cli` is `foreslice`."""

from autoscaler.cli.main import main

main()
