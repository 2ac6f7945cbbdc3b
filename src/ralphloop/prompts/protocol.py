"""The part of every prompt that tells the agent how its answer is read.

The words here and the rules of the core say the same thing; when one changes, so must the other.
Template and example are indented, so that an agent that echoes its prompt claims nothing by it.
"""

from __future__ import annotations

STATUS_SECTION = """\
## RALPH_STATUS (mandatory)

End every answer with exactly this block, not indented, filled in, with nothing after it:

    ---RALPH_STATUS---
    STATUS: IN_PROGRESS | COMPLETE | BLOCKED
    TASKS_COMPLETED_THIS_LOOP: <number>
    FILES_MODIFIED: <number>
    TESTS_STATUS: PASSING | FAILING | NOT_RUN
    WORK_TYPE: IMPLEMENTATION | TESTING | DOCUMENTATION | REFACTORING
    EXIT_SIGNAL: false | true
    RECOMMENDATION: <one line summary>
    ---END_RALPH_STATUS---

- STATUS: COMPLETE says that *this story* is finished; so does TASKS_COMPLETED_THIS_LOOP of 1 or
  more. Either is a claim: afterwards the project's checks are run, and the story passes only if
  they are green. `passes` in the story file is set by the supervisor; leave it as it is.
- STATUS: BLOCKED says that a person is needed. Put the question or the missing thing into
  RECOMMENDATION. Nobody can answer while you work, so do not ask and wait.
- EXIT_SIGNAL speaks of the *whole project*: true only when every story is done and nothing is left.
- If the story was already done before you began, say so in words ("already implemented") and
  report COMPLETE.

Example of a story that is finished while others are open:

    ---RALPH_STATUS---
    STATUS: COMPLETE
    TASKS_COMPLETED_THIS_LOOP: 1
    FILES_MODIFIED: 3
    TESTS_STATUS: PASSING
    WORK_TYPE: IMPLEMENTATION
    EXIT_SIGNAL: false
    RECOMMENDATION: Login works; the password reset is the next story
    ---END_RALPH_STATUS---
"""

ASK_FOR_STATUS = f"""\
Your last answer does not end with the RALPH_STATUS block, so nobody can tell what you have done.
Do nothing more: change no files, run nothing. Answer with the block alone, about the work as it is
now, without making it look better or worse.

{STATUS_SECTION}"""

DEFAULT_INSTRUCTIONS = """\
# How to work

You are one of many runs over this repository. You have no memory of earlier ones; what they left
is in the files, the commits and the notes below.

1. Read what the story needs before you change anything.
2. Work on the one story below and on nothing else.
3. Run the project's checks yourself and fix what you broke. Never delete, skip or weaken a test to
   make it pass.
4. Leave the work tree in a state that could be committed. You may commit; you need not.
"""


def has_status_section(text: str) -> bool:
    """True where a prompt file already explains the block itself."""
    return "RALPH_STATUS" in text.upper()
