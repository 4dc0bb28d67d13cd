"""Composition roots: the process, and AWS, KWOK and listings as the settings ask for them."""
