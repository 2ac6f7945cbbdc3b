"""The journal: the truth about every run, and what others may see of it.

`store` writes it, `reader` reads it beside a run, `lock` keeps one run per repository, `holder`
answers who that is at the cost of one small file, `views` are the published files derived from it.
Nothing is imported here: a hook that has nothing to do must cost next to nothing.
"""
