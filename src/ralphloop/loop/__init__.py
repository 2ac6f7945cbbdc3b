"""Script mode: the loop itself and what it needs around it."""
