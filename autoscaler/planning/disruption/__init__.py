"""Decides which managed nodes stay, drain and end; baselines and their windows; drift of published slices."""
