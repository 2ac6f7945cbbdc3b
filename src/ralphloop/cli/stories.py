"""`ralph stories`: when each story runs and why then, what became of it; and editing the list.

Every change is spliced into the file: order, indentation, comments and unknown keys stay.  A run
that goes on takes the list from disk, so a story added now is part of the night.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.shared.errands import errand_data
from ralphloop.cli.shared.options import complete_story, json_option
from ralphloop.cli.shared.proposed_stories import (
    accept_proposal,
    open_proposals,
    proposal_called,
    shown_proposal,
)
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.cli.shared.story_schema import schema_text
from ralphloop.core.grading import Grade
from ralphloop.core.model import StoryList
from ralphloop.core.proposals import LONGEST_PROPOSAL, ProposalStanding
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import spent_words
from ralphloop.errors import ExitCode, InputError, UsageError
from ralphloop.loop.proposing import decide
from ralphloop.loop.proposing import drop as drop_proposal
from ralphloop.night.look import Position, arranged, config_of, look_at_list, story_file
from ralphloop.night.values import Night
from ralphloop.project import Project, find_project, relative
from ralphloop.stories.adding import add_story
from ralphloop.stories.documents import Entry
from ralphloop.stories.lint import as_lines, remarks
from ralphloop.stories.names import label
from ralphloop.stories.shapes import Listing
from ralphloop.stories.source import load, position, rearrange, story_text
from ralphloop.text.plain import counted, one_line

_COLOURS = {Standing.PASSED: "green", Standing.OPEN: "dim"}  # the others are yellow
_MARKS = {Standing.PASSED: "ok", Standing.BLOCKED: "?"}
_INDENT = 5


def _file() -> Path:
    project = find_project()
    return story_file(project, None, config_of(project, None))


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One object; see docs/reference/commands.md.")
@click.pass_context
def stories(ctx: click.Context, as_json: bool) -> None:
    """List the stories: order and reason, state, grade, attempts, cost.  Or edit the list."""
    if ctx.invoked_subcommand is not None:
        return
    night = look_at_stories(find_project())
    found = night.story_list
    errands = night.errands
    listed = list(arranged(found, night.session.stories)) if found else []
    data: dict[str, object] = {"v": 1, "source": None, "total": 0, "passed": 0}
    data |= output.picked(found, "source", "total", "passed") if found else {}
    data["stories"] = [
        {
            **output.picked(placed.look.story, "id", "title"),
            "order": placed.position,
            "why": placed.why,
            "state": placed.look.standing,
            "grade": placed.look.grade or None,
            "attempts": placed.look.failed,
            **output.picked(placed.look.state.totals, "iterations", "cost_usd"),
            "cost_known": not placed.look.state.totals.unpriced,
            "reason": placed.look.state.reason or None,
            "depends_on": placed.look.story.depends_on,
            "saved_ref": placed.look.state.base.saved_ref or None,
            "bring_back": placed.look.bring_back or None,
        }
        for placed in listed
    ]
    data["errands"] = [errand_data(errand) for errand in errands]
    output.show(story_lines(night), data, as_json=as_json)


def look_at_stories(project: Project) -> Night:
    """The list as it stands; raises where there is none to show."""
    night = look_at_list(project)
    has_none = night.story_list is None and not night.errands
    if has_none and night.stories_problem:
        if night.run is None:
            # It says so itself where the list may not be opened.
            story_file(project, None, config_of(project, None))
        step = "Correct it; `ralph doctor` checks it, and `ralph stories add` adds a story."
        raise InputError(night.stories_problem, step)
    if has_none:
        words = "the last run was a plain loop without stories"
        raise InputError(words, "`ralph status` shows how it stands.")
    return night


def story_lines(night: Night) -> Iterator[str]:
    """Order, reason and state of every story, for people."""
    if night.story_list is not None:
        listed = list(arranged(night.story_list, night.session.stories))
        yield from _as_lines(night.story_list, listed, night.project.root)
    yield from _beside(night)


def _beside(night: Night) -> Iterator[str]:
    """What was given in words, below the list."""
    if night.errands:
        yield ""
        yield "Given in words, beside the list:"
    for errand in night.errands:
        story = errand.look.story
        mark = _MARKS.get(errand.look.standing, "-")
        colour = _COLOURS.get(errand.look.standing, "yellow")
        name = f"{label(story.id)}: {story.title}"
        yield from output.row(f"{mark:>3}", name, colour, width=_INDENT)
        yield from output.row("", errand.how(night.now), width=_INDENT)


def _as_lines(story_list: StoryList, listed: list[Position], root: Path) -> Iterator[str]:
    for placed in listed:
        seen = placed.look
        state = placed.look.state
        paid = state.totals
        mark = str(placed.position or _MARKS.get(seen.standing, "-"))
        name = f"{label(seen.story.id)}: {seen.story.title}"
        colour = _COLOURS.get(seen.standing, "yellow")
        if seen.grade == Grade.NEEDS_REVIEW:
            mark = "!"
            colour = "yellow"
        yield from output.row(f"{mark:>3}", name, colour, width=_INDENT)
        parts = [
            f"{seen.standing} ({seen.grade})" if seen.grade else str(seen.standing),
            counted(paid.iterations, "iteration") if paid.iterations else "",
            counted(seen.failed, "failed attempt") if seen.failed else "",
            spent_words(paid.cost_usd, paid.unpriced) if paid.cost_usd or paid.unpriced else "",
        ]
        if seen.standing in (Standing.BLOCKED, Standing.SET_ASIDE):
            parts[0] = ""  # the reason says it
        facts = ", ".join(filter(None, parts))
        words = ": ".join(filter(None, [facts, placed.why]))
        yield from output.row("", words, width=_INDENT)
        if seen.bring_back:
            yield from output.row("", f"its work is kept: `{seen.bring_back}`", width=_INDENT)
    total = f"{story_list.passed} of {counted(story_list.total, 'story')} passed"
    states = [placed.look.state for placed in listed]
    spent = spent_words(
        sum(s.totals.cost_usd for s in states), sum(s.totals.unpriced for s in states)
    )
    yield ""
    yield f"{total}, {spent}, from {relative(Path(story_list.source), root)}"


@stories.command()
@click.argument("title", nargs=-1, required=True)
@click.option("--id", "name", help="Its id; by default the next number.")
@click.option("--criterion", "-c", "criteria", multiple=True, help="What will be seen. Repeatable.")
@click.option("--description", default="", help="What is wanted, and why.")
@click.option("--verify", help="The command that proves it, as you would type it; no shell.")
@click.option("--priority", type=float, help="The lowest comes first.")
@click.option("--depends-on", "-d", multiple=True, help="A story that must pass first. Repeatable.")
@click.option("--after", help="Stand behind this story; by default at the end.")
def add(
    title: tuple[str, ...],
    name: str | None,
    criteria: tuple[str, ...],
    description: str,
    verify: str | None,
    priority: float | None,
    depends_on: tuple[str, ...],
    after: str | None,
) -> None:
    """Add a story; the first one replaces the sample of `ralph init`.

    \b
    ralph stories add "Greet in French" -c '`greet --lang fr` prints Bonjour'
    """
    path = _file()
    made = add_story(
        path,
        {
            "id": name,
            "title": " ".join(title),
            "description": description,
            "acceptanceCriteria": list(criteria),
            "priority": int(priority) if priority and priority.is_integer() else priority,
            "dependsOn": list(depends_on),
            "verify": verify,
        },
        after=after,
    )
    _tell(path, made, "added to")


@stories.command()
@json_option("One object with all that are open.")
def proposed(as_json: bool) -> None:
    """List what agents found on the way, and what else was proposed: stories of nobody yet."""
    found = open_proposals(find_project())
    data = {"v": 1, "proposals": [msgspec.to_builtins(one) for one in found]}
    lines = [line for one in found for line in shown_proposal(one)]
    lines += ["`ralph stories accept F-1 -c …` makes it a story, `ralph stories drop F-1` drops it"]
    output.show(lines if found else ["Nothing is proposed."], data, as_json=as_json)


@stories.command()
@click.argument("proposal")
@click.option("--criterion", "-c", "criteria", multiple=True, help="What will be seen. Repeatable.")
@click.option("--title", default="", help="Its title; by default its first sentence.")
@click.option("--plan", "planned", is_flag=True, help="Let `ralph plan` make stories of it.")
@click.option("--yes", is_flag=True, help="With --plan: write without asking.")
@click.pass_context
def accept(
    ctx: click.Context,
    proposal: str,
    criteria: tuple[str, ...],
    title: str,
    planned: bool,
    yes: bool,
) -> None:
    """Make a proposed story one of the list; asks what will be seen when it is done."""
    project = find_project()
    refuse_agent(project, "stories accept")
    one = proposal_called(project, proposal)
    if planned:
        from ralphloop.cli.plan import plan

        before = set(_ids())
        # With where it comes from, so that words an agent wrote are never taken for a file's name.
        ctx.invoke(plan, words=(f"{one.text}\n\n({one.provenance})",), yes=yes)
        added = [name for name in _ids() if name not in before]
        if added:
            standing = ProposalStanding.ACCEPTED
            decide(project, msgspec.structs.replace(one, standing=standing, became=added[0]))
        else:
            output.emit_lines([f"{one.id} goes on waiting: nothing was added."])
        return
    made = accept_proposal(project, one, criteria, title)
    _tell(_file(), made, "added to")


@stories.command()
@click.argument("proposal")
def drop(proposal: str) -> str:
    """Drop a proposed story; the same words are not proposed again."""
    project = find_project()
    refuse_agent(project, "stories drop")
    one = proposal_called(project, proposal)
    drop_proposal(project, one)
    return f"{one.id} was dropped."


@stories.command()
@click.argument("story", shell_complete=complete_story)
def edit(story: str) -> None:
    """Change a story in your editor, as JSON, or the words of a proposed one."""
    if not sys.stdin.isatty():
        raise UsageError("an editor needs a terminal", "Edit the file, or use ralph stories add.")
    project = find_project()
    waiting = next((one for one in open_proposals(project) if one.id == story), None)
    if waiting is not None:
        words = click.edit(waiting.text)
        if words is None or not words.strip():
            output.emit_lines(["Nothing was changed."])
            return
        text = one_line(words, LONGEST_PROPOSAL)
        decide(project, msgspec.structs.replace(waiting, text=text))
        output.emit_lines([f"{story} was changed."])
        return
    path = _file()
    listing = story_text(path).listing
    before = listing.entries[position(listing, story)]
    text = json.dumps(before, indent=2, ensure_ascii=False) + "\n"
    written = click.edit(text, extension=".json")
    if written is None or written == text:
        output.emit_lines(["Nothing was changed."])
        return
    try:
        entry = json.loads(written)
    except ValueError as error:
        step = f"Nothing was changed. What you wrote:\n{written}"
        raise InputError(f"not valid JSON: {error}", step) from None
    rearrange(
        path,
        lambda now, listing: [entry if one == position(listing, story) else one for one in now],
    )
    _tell(path, story, "changed in")


@stories.command()
@click.argument("story", shell_complete=complete_story)
@click.option("--before", help="Stand before this story.")
@click.option("--after", help="Stand behind this story.")
def move(story: str, before: str | None, after: str | None) -> None:
    """Move a story in the file; the order counts among stories of the same priority."""
    if (before is None) == (after is None):
        raise UsageError("say where to", f"ralph stories move {story} --before US-001")

    def arranged(now: list[int | Entry], listing: Listing) -> list[int | Entry]:
        here = position(listing, story)
        there = position(listing, before or after or "")
        rest = [one for one in now if one != here]
        if there == here:
            return now
        at = rest.index(there)
        if after is not None:
            at += 1
        return [*rest[:at], here, *rest[at:]]

    path = _file()
    rearrange(path, arranged)
    output.emit_lines([f"{label(story)} was moved in {_name(path)}."])


@stories.command()
@click.argument("story", shell_complete=complete_story)
def rm(story: str) -> None:
    """Remove a story from the list; what it changed stays."""
    path = _file()
    others = [s.id for s in load(path).list.stories if story in s.depends_on]
    if others:
        words = f"{label(others[0])} depends on {label(story)}"
        raise UsageError(words, f"Change it first: ralph stories edit {others[0]}")
    rearrange(path, lambda now, listing: [one for one in now if one != position(listing, story)])
    output.emit_lines([f"{label(story)} was removed from {_name(path)}."])


@stories.command()
@click.option("--json", "as_json", is_flag=True, help="One object per remark.")
def check(as_json: bool) -> int:
    """Say what the list is likely to be missing; ends with 1 where there is something."""
    path = _file()
    listed = load(path).list
    found = list(remarks(listed, story_text(path).listing))
    words = counted(len(found), "remark") if found else "nothing to remark"
    lines = [row for line in as_lines(found) for row in output.row("!", line, "yellow", width=2)]
    lines += [f"{counted(listed.total, 'story')} in {_name(path)}: {words}"]
    output.show(lines, [one._asdict() for one in found], as_json=as_json)
    return ExitCode.HALTED if found else ExitCode.COMPLETE


@stories.command()
def schema() -> None:
    """Print the JSON Schema of prd.json, for editors that complete and check."""
    output.emit_lines([schema_text().rstrip()])


def _ids() -> list[str]:
    """The stories of the list as it is; none where there is no list yet."""
    try:
        return [story.id for story in load(_file()).list.stories]
    except InputError:
        return []


def _tell(path: Path, story: str, how: str) -> None:
    """That a story was written, and what it is likely to be missing."""
    output.emit_lines([f"{label(story)} was {how} {_name(path)}."])
    found = remarks(load(path).list, story_text(path).listing)
    for line in as_lines([one for one in found if one.story == story]):
        output.warn(line)


def _name(path: Path) -> str:
    return relative(path, find_project().root)
