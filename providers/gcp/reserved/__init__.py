"""What is reserved: reservations, their parts, TPU chips, and what calendar mode has to sell."""
