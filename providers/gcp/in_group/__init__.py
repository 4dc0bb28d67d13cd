"""The parts of a launch in a group: its members, and the resize request that waits."""
