"""The prompt of one iteration, from the story, its history and the run's memory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ralphloop.core.model import Circuit
from ralphloop.core.session import Session
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import StoryState
from ralphloop.errors import InputError
from ralphloop.journal.views import PROGRESS_VIEW, progress_tail
from ralphloop.loop.setup import Setup, relative, spec_of
from ralphloop.prompts import Parts, Prompt, build_prompt
from ralphloop.room import open_regular

_PROGRESS_BYTES = 12_000
_SPEC_BYTES = 1 << 20
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def brief(
    setup: Setup,
    session: Session,
    story: Story | None,
    stories: StoryList | None,
    *,
    learned: str = "",
) -> Prompt:
    """The prompt for the next start."""
    state = session.story(story.id if story else None)
    parts = Parts(
        instructions=setup.instructions,
        plain=story is None,
        failure=state.failure,
        findings=state.findings,
        nudge=nudge(session),
        progress=_recent_progress(setup),
        notes=session.desk.notes,
        leftovers=state.leftovers,
    )
    if story is not None and stories is not None:
        parts = _with_story(parts, setup, session, story, stories)
    return build_prompt(msgspec.structs.replace(parts, learned=learned))


def _with_story(
    parts: Parts, setup: Setup, session: Session, story: Story, stories: StoryList
) -> Parts:
    import shlex

    spec, text, notes = None, "", parts.notes
    try:
        if (spec := spec_of(story, setup)) is not None:
            text = _read(spec)
    except (InputError, OSError) as error:
        # It was there when the run began; an agent that removed it does not end the night.
        notes = (*notes, f"The parent specification cannot be read: {error}")
    return msgspec.structs.replace(
        parts,
        notes=notes,
        project=_project(stories),
        spec=text,
        spec_name=relative(spec, setup.project.root) if spec and text else "",
        story_id=story.id,
        story_title=story.title,
        story_description=story.description,
        criteria=story.criteria,
        story_notes=story.notes,
        verify=shlex.join(story.verify) if story.verify else "",
        checks=[shlex.join(argv) for argv in session.frozen.checks],
        position=f"{stories.passed} of {stories.total} stories have passed",
        attempt=_attempt(session.story(story.id)),
    )


def nudge(session: Session) -> str:
    """In HALF_OPEN: what was tried, what failed, and that another way is needed."""
    state = session.state
    if state.breaker.circuit is not Circuit.HALF_OPEN:
        return ""
    lines = [f"The last {state.breaker.no_progress} runs changed nothing that counts."]
    if state.breaker.last_error:
        lines.append(f"The last error was: {state.breaker.last_error}")
    replies = [glimpse.reply[:200] for glimpse in state.window[-2:] if glimpse.reply]
    lines += [f'One of them said: "{reply}"' for reply in replies]
    lines.append(
        "Do not repeat that. Take a different and smaller step that changes a file, or report"
        " BLOCKED with what you need from a person."
    )
    return "\n".join(lines)


def _project(stories: StoryList) -> str:
    return "\n\n".join(part for part in (stories.project, stories.description) if part)


def _attempt(state: StoryState) -> str:
    if not state.attempts:
        return ""
    tries = state.attempts + 1
    ordinal = _ORDINALS[tries - 1] if tries <= len(_ORDINALS) else f"{tries}th"
    return f"this is the {ordinal} attempt at it"


def _recent_progress(setup: Setup) -> str:
    path = setup.project.root / PROGRESS_VIEW
    try:
        text = progress_tail(path, _PROGRESS_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    start = text.find("## Iteration")
    return text[start:] if start > 0 else text


def _read(path: Path) -> str:
    with open_regular(path) as file:
        return file.read(_SPEC_BYTES).decode("utf-8", "replace")
