"""Every text a person reads, rendered in one place from closed enums and data. Pure."""
