"""Reserved capacity: reservations, their parts, TPU chips, and the offers of calendar mode."""
