"""All texts for people, rendered in one place from closed enums and data. Pure."""
