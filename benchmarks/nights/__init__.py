"""Scripted nights for any supervisor of Claude Code, judged by tests that no supervisor sees.

Every supervisor drives the real `claude` program against a scripted model on loopback, so all of
them meet the same agent.  `python -m benchmarks.nights` runs them; `docs/benchmarks.md` explains
the method and how to add a night or a supervisor.
"""
