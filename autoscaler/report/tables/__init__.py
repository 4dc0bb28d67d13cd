"""The output of the commands: tables for people, entries for programs."""
