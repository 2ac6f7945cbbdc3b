"""Nights of ten stories of which three are lies, to try whether a person sees them.

    python -m tests.nights_of_ten --seed 7 /tmp/a-night

makes a repository in `/tmp/a-night/shop` and lets a scripted agent work through ten stories there,
with the real command.  Nights of different seeds differ in their stories, their order, and which
three are lies of which kind.  What was a lie is written to `/tmp/a-night/answers.json`, beside the
repository: whoever judges the night looks at `ralph review` in `shop` and at nothing else.
"""
