"""Advice as a list of steps, with the result and remarks; the same on a terminal, a page and in documents."""
