"""Measurements, never assertions: figures are printed beside their targets, and people judge them."""
