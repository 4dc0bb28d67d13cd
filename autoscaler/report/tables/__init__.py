"""What the commands print: tables for people, entries for programs."""
