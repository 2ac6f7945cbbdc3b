"""What a hook may answer: one JSON object, small enough that nothing of it is cut.  Pure.

Claude Code keeps 10,000 characters of a hook's output.  A prompt that does not fit is already in a
file; then the answer names the story and sends the agent there.
"""

import json
from collections.abc import Callable

from ralphloop.loop.begin import Begun
from ralphloop.text.plain import one_line

Answer = dict[str, object]
MOST_CHARS = 10_000
_MOST_WORDS = 1_500
# The rules stand above, or in the reminder that follows a summary of the conversation.
_STILL = (
    "The rules of the loop hold as before: this one story, the project's checks, and the"
    " RALPH_STATUS block at the end of your answer (STATUS of this story, EXIT_SIGNAL of the whole"
    " project).\n\n"
)


def told(words: str) -> Answer:
    """Let the session stop, and tell the person why."""
    return {"systemMessage": f"ralph: {one_line(words, _MOST_WORDS)}"}


def refused(words: str) -> Answer:
    """The answer to a command that needs no model: shown to the person, sent nowhere."""
    return {
        "decision": "block",
        "reason": words[: MOST_CHARS - 500],
        "hookSpecificOutput": {
            "hookEventName": "UserPromptExpansion",
            "suppressOriginalPrompt": True,
        },
    }


def blocked(begun: Begun, words: str) -> Answer:
    """Do not stop: here is the next prompt."""
    story = f"{_STILL}{begun.prompt.text[begun.prompt.rules :].lstrip()}"
    return _fitting(begun, story, lambda text: {"decision": "block", "reason": text, **told(words)})


def in_context(event: str, begun: Begun, words: str) -> Answer:
    """Add the prompt to what the agent is about to read anyway."""

    def with_context(text: str) -> Answer:
        context = {"hookEventName": event, "additionalContext": text}
        return {"hookSpecificOutput": context, **told(words)}

    return _fitting(begun, begun.prompt.text, with_context)


def _fitting(begun: Begun, prompt: str, made: Callable[[str], Answer]) -> Answer:
    """With the prompt, or with where it is to be read."""
    head = (
        f"This is iteration {begun.number} of a ralph loop in this session. Earlier ones may stand"
        " above; what counts of them is in the files.\n\n"
    )
    whole = made(f"{head}{prompt}")
    if len(json.dumps(whole, ensure_ascii=False)) <= MOST_CHARS:
        return whole
    story, path = begun.story, begun.transcript.with_suffix(".prompt.md")
    what = f"Your story: {story.id}: {one_line(story.title, 200)}.\n\n" if story else ""
    return made(
        f"{head}{what}The whole prompt has {len(begun.prompt.text):,} characters and is in the"
        f" file\n{path}\nRead that file completely before anything else, then do what it says; it"
        " also says how your answer has to end (RALPH_STATUS)."
    )
