"""What a group has of a launch: its members, and the resize request that waits."""
