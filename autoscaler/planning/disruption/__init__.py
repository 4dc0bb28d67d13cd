"""Which own nodes stay, drain and end; baselines and their windows; drift of published slices."""
