"""The user's repository: what changed, whether it proves the story, and how it is committed.

Nothing here decides; it measures (`snapshot`, `checks`, `tamper`), reports what stands in the way
(`work_tree`, `preflight`) and performs the few writes a run owes (`commit`, `set_aside`).
"""
