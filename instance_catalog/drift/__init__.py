"""Predicted against published ResourceSlices, and the overlay that repairs a difference."""
