"""The journal: the truth about every run, and what others may see of it.

Nothing is imported here: a hook that has nothing to do must cost next to nothing.
"""
