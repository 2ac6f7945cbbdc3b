"""Recorded or scripted iterations played through the readers and the core."""
