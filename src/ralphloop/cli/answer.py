"""`ralph answer`: what stories wait for, and a person's answer."""

import shlex
import sys

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import complete_story
from ralphloop.cli.shared.steering import lane_option, send_request, story_of_lane
from ralphloop.errors import UsageError
from ralphloop.journal.records import Wish
from ralphloop.night.look import look
from ralphloop.project import Project, find_project

NO_QUESTION = "No story waits for you."


def open_questions(project: Project) -> dict[str, str]:
    """What each story waits for, by its id."""
    return {seen.story.id: seen.state.reason for seen in look(project).asking}


@click.command()
@click.argument("story", required=False, shell_complete=complete_story)
@click.argument("text", nargs=-1)
@lane_option
def answer(story: str | None, text: tuple[str, ...], lane: int | None) -> str | None:
    """Answer what a story waits for; without words an editor opens, without a story all are shown.

    The story is open again, its next prompt has your words, and nothing that was tried before
    counts against it.

    \b
    ralph answer                          what waits for you
    ralph answer US-010 "Use the v2 API"  whether a run goes on or not
    ralph answer --lane 2 "Use the v2 API"
    """
    if lane is not None:
        # What stood in the story's place is the first word of the answer.
        text = (story, *text) if story else text
        story = story_of_lane(lane)
    waiting = open_questions(find_project())
    if story is None:
        for name, question in waiting.items():
            output.emit_lines(output.row("?", f"{name}: {question}", width=2))
            output.emit_lines(output.row("", f'ralph answer {shlex.quote(name)} "…"', width=2))
        return None if waiting else NO_QUESTION
    words = " ".join(text)
    if not words and not sys.stdin.isatty():
        raise UsageError("the answer has no words", f'ralph answer {story} "…"')
    if not words:
        question = "".join(f"# {line}\n" for line in waiting.get(story, "").splitlines())
        written = click.edit(f"\n{question}# Your answer; lines that begin with # are left out.\n")
        lines = [line for line in (written or "").splitlines() if not line.startswith("#")]
        words = "\n".join(lines).strip()
    if not words:
        raise UsageError("nothing was written, so nothing was answered", f"ralph answer {story}")
    return send_request(find_project(), "answer", Wish(story=story, text=words))
