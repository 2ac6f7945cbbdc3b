"""A loop inside an agent session, carried by the session's own hooks.

    /ralph ──► begin ──► the agent works ──► stop ──► judged like any iteration ──┐
                              ▲                                                   ├─► or why not
                              └───────────────── the next prompt ◄────────────────┘

Core, stories, repo and journal are those of script mode, and so are the loop's steps; what is
missing is the process that lives as long as the loop.  In its place the session holds the project
by a lease (`journal.holder`), and the iteration that goes on is the one the journal knows as begun
and not finished.

`entry` finds out at the cost of a few milliseconds whether a hook is any business of ours; nothing
else here is imported before that.
"""
