"""The command line: one file per command, thin. Heavy imports happen inside commands, so that --help stays quick."""
