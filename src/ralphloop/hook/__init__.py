"""A loop inside an agent session, carried by the session's own hooks.

    /ralph ──► begin ──► the agent works ──► stop ──► judged like any iteration ──┐
                              ▲                                                   ├─► or why not
                              └───────────────── the next prompt ◄────────────────┘

The steps are those of script mode.  In place of a process that lives as long as the loop the
session holds the project by a lease (`journal.holder`), and the iteration that goes on is the one
the journal knows as begun and not finished.
"""
