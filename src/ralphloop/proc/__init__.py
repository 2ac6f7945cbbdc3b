"""Processes: in a session of their own, bounded, watched, and ended with all they started."""
