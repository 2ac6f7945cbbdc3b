"""Which stack a repository is built on: a table of TOML files, and the reading of it.

`table` says what a file may contain, `detect` what can be asked of a directory, and what follows.
A new stack is a new file in `data/`; no code knows any of them by name.
"""
