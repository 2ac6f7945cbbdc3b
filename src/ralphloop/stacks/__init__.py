"""Which stack a repository is built on: a table of TOML files, and the reading of it.

`table` says what a file may contain, `facts` what can be asked of a directory, `detect` puts both
together.  A new stack is a new file in `data/`; no code knows any of them by name.
"""
