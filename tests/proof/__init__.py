"""Cheats against the proof of a story, and honest work that looks alike."""
