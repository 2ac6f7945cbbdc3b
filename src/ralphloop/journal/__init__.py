"""The journal: the truth about every run, and what others may see of it.

`journal` writes it, `queries` ask it, `lock` keeps one run per work tree, `holder` answers who that
is at the cost of one small file, `views` are the published files derived from it.
Nothing is imported here: a hook that has nothing to do must cost next to nothing.
"""
