"""A second model as a doubter: `checks.doubt = ["@codex"]`, or any agent that can be told to read.

It gets the shipped reviewer's prompt with the story, its criteria and the whole change as text, in
parts where that is long, and answers criterion by criterion.  It is started so that it only reads;
what it changed all the same is itself a doubt.  What it cannot say is no obstacle, and what it cost
is part of the iteration.
"""

import uuid
from importlib.resources import files
from typing import NamedTuple

from ralphloop.agents.base import AgentRequest
from ralphloop.agents.prices import billed
from ralphloop.agents.process import Rules, run_agent
from ralphloop.agents.transcript import Transcript
from ralphloop.core.events import AgentStep
from ralphloop.core.model import Outcome, Story, Usage
from ralphloop.errors import RalphError
from ralphloop.loop.begin import Round
from ralphloop.loop.ceiling import StartBudget, budget_after, ceiling_kind, start_ceiling
from ralphloop.loop.confine import read_only
from ralphloop.loop.prepare import Worker
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily_now
from ralphloop.loop.workspace import Workspace
from ralphloop.text.plain import one_line

_DOUBTS = "DOUBT:"
_MOST_DOUBTS = 5
_STALL_S = 300.0


class ReviewedPart(NamedTuple):
    """A part of a change that is asked about; `which` it is, where it is not all of it."""

    diff: str
    which: str


class Review(NamedTuple):
    """What a reviewer doubts, empty where it does not, and what asking it used."""

    words: str = ""
    usage: Usage = Usage()
    unheard: str = ""  # why nothing was heard of it


async def review(
    run: Run, workspace: Workspace, begun: Round, worker: Worker, part: ReviewedPart, spent: Usage
) -> Review:
    """Ask one agent about one part of a change, with what is left of the run's money."""
    story = begun.story
    if story is None:
        return Review()
    budget = budget_after(run, workspace, spent)
    if budget.is_used_up:
        return Review(unheard="was not asked: nothing is left of what the run may use")
    try:
        return await _asked(run, workspace, begun, worker, _prompt(story, part), budget)
    except (RalphError, OSError) as error:  # a reviewer that cannot be started is no obstacle
        return Review(unheard=f"could not be asked: {one_line(str(error))}")


async def _asked(
    run: Run, workspace: Workspace, begun: Round, worker: Worker, prompt: str, budget: StartBudget
) -> Review:
    site = workspace.site
    name = worker.name
    box = site.agent_boxes.get(name)
    request = AgentRequest(
        config=worker.config,
        settings_dir=workspace.project.directory / "agent",
        prompt=prompt,
        cwd=workspace.project.root,
        run_id=run.id,
        iteration=begun.number,
        inherited=site.env_for(name),
        box=read_only(box, site) if box else None,
        story_id=begun.story.id if begun.story else None,
        session_id=str(uuid.uuid4()),
        budget_usd=budget.usd,
        reads_only=True,
    )
    before = await steadily_now(run, workspace.measure.tree)
    log = begun.transcript.with_suffix(f".{name}.log")
    wall = min(run.config.checks.timeout, run.config.limits.iteration_timeout)
    with Transcript(log) as sink:
        finished = await run_agent(
            worker.agent.launch(request),
            sink=sink,
            rules=Rules(
                wall_s=wall,
                stall_s=min(_STALL_S, wall),
                is_too_much=start_ceiling(run, budget),
                ceiling=ceiling_kind(run),
                prices=run.config.prices.models,
            ),
            stop=run.stop,
        )
    prices = run.config.prices.models
    response = billed(finished.response, worker.config, run.setup.options.env, prices)
    workspace.touched()
    try:
        after = await steadily_now(run, workspace.measure.tree)
    except RalphError as error:  # its answer was paid for
        return Review(usage=response.usage, unheard=f"is not known to have only read: {error}")
    if before.tree != after.tree:
        return Review("the reviewer itself changed files while it was to read", response.usage)
    has_answered = response.outcome in (Outcome.COMPLETED, Outcome.DENIED)
    words = doubts_in(response.final_words) if has_answered else ""
    unheard = ""
    if not has_answered:
        unheard = f"did not answer: {finished.stopped_because or response.reason}"
    told = words or unheard or "nothing to doubt"
    step = AgentStep(kind="doubt", summary=one_line(f"{name}: {told}"), ok=not words)
    run.emit(step, begun.number)
    return Review(words, response.usage, unheard)


def doubts_in(answer: str) -> str:
    """What an answer doubts, from its lines that say so; empty where none does."""
    found = []
    for line in answer.split("\n"):
        bare = line.strip().lstrip("-*• ").replace("**", "")
        words = bare.removeprefix(_DOUBTS).strip()
        if bare.startswith(_DOUBTS) and words:
            found.append(words)
    return one_line("; ".join(found[:_MOST_DOUBTS]), 2_000)


def _prompt(story: Story, part: ReviewedPart) -> str:
    told = files("ralphloop.prompts").joinpath("templates/reviewer.md").read_text(encoding="utf-8")
    criteria = "\n".join(f"{n}. {text}" for n, text in enumerate(story.criteria, 1))
    return "\n\n".join(
        (
            told.rstrip(),
            f"# The story: {story.id}: {story.title}",
            story.description,
            f"# Its criteria\n\n{criteria or 'none are named'}",
            f"# The change{part.which}\n\n{part.diff}",
        )
    )
