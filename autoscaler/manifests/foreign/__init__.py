"""Objects and files that are not read: what they are, and what they ask for."""
