"""What a run would do, shown and not done: stories in order and why, checks, the first prompt."""

import shlex
from collections.abc import Iterator

from ralphloop.cli import output
from ralphloop.core.interventions import Reopened
from ralphloop.core.model import ExitDecision
from ralphloop.core.planning import choose
from ralphloop.core.run_state import OperatorOverrides, RunBaseline
from ralphloop.lanes.lacking import lacking_in_lanes
from ralphloop.loop.begin import brief
from ralphloop.loop.prepare import Setup, remarks_on
from ralphloop.night.look import Position, arranged, look
from ralphloop.prompts import Prompt


def show_plan(setup: Setup) -> None:
    """Print stories in order and why, the checks, and the first prompt; do nothing."""
    night = look(setup.project)
    resume = setup.options.resume
    session = night.session
    ended = night.run.decision if night.run else ""
    session.baseline = RunBaseline(checks=setup.config.checks.commands)
    stories = setup.stories.list if setup.stories else None
    listed = arranged(stories, session.stories) if stories else ()
    steps = [placed for placed in listed if not placed.look.story.passes]
    # What waits is tried again, as by the run to come; a new one knows no notes.
    if not resume or ended in (ExitDecision.BLOCKED, ExitDecision.TEST_SATURATION):
        session.state = Reopened(waiting_only=resume).applied(session.state, setup.policy)
    session.overrides = session.overrides if resume else OperatorOverrides()
    story = choose(stories, session.stories, only=setup.options.only) if stories else None
    prompt = None
    if story or stories is None:
        prompt = brief(setup, setup.site, session, story, stories, setup.workers[0]).prompt
    # Where commits would land, and how a run would come there.
    branch = ""
    how = ""
    if setup.repo:
        branch = setup.repo.branch() or ""
        how = "already"
    if setup.repo and stories and stories.branch_name:
        branch = stories.branch_name
        how = setup.repo.way_to(stories.branch_name).how
    data = {
        "project": str(setup.project.root),
        "branch": branch or None,
        "branch_is": how or None,
        "agent": setup.config.agent.name,
        "checks": setup.config.checks.commands,
        "stories": [
            {
                **output.picked(step.look.story, "id", "title"),
                "runs": step.position is not None,
                "reason": step.why,
            }
            for step in steps
        ],
        "remarks": remarks_on(setup),
        "prompt_tokens": prompt.estimated_tokens if prompt else 0,
        "prompt": prompt.text if prompt else None,
    }
    lines = _plan_lines(setup, branch, how, steps, prompt)
    output.show(lines, data, as_json=setup.options.as_json)


def _plan_lines(
    setup: Setup, branch: str, how: str, steps: list[Position], prompt: Prompt | None
) -> Iterator[str]:
    yield f"project  {setup.project.root}"
    if branch:
        words = {"created": " (it would be made)", "switched": " (it would be switched to)"}
        yield output.safe(f"branch   {branch}{words.get(how, '')}")
    yield f"agent    {setup.config.agent.name} {setup.config.agent.models}".rstrip()
    checks = " · ".join(shlex.join(argv) for argv in setup.config.checks.commands)
    yield f"checks   {checks or 'none: stories can only be claimed'}"
    if steps:
        yield "stories"
    for step in steps:
        mark = f"{step.position:>3}." if step.position else "  - "
        yield f"  {mark} {output.safe(step.look.story.id)}: {output.safe(step.look.story.title)}"
        yield f"       {output.safe(step.why)}"
    if setup.config.lanes.count:
        for lacking in lacking_in_lanes(setup.project.root, setup.config, setup.repo):
            yield output.safe(f"  ! in a lane: {lacking}")
    for remark in remarks_on(setup):
        yield output.safe(f"  ! {remark}")
    if prompt is None:
        yield "Nothing can run; see ralph stories."
        return
    yield f"first prompt: about {prompt.estimated_tokens:,} tokens"
    for part in prompt.left_out:
        yield f"  left out: {part}"
    yield ""
    yield output.safe(prompt.text)
