"""Every setting: declared once, named in file, environment and flags, loaded and checked."""
