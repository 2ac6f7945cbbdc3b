"""What the loop does for learning: carry into prompts, ask, capture, aggregate, publish.

Nothing here decides anything or ends a run; what goes wrong is said and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ralphloop.config.model import CommitPolicy
from ralphloop.core.model import Outcome
from ralphloop.core.story_state import Standing
from ralphloop.loop.judging import Judged
from ralphloop.loop.runner import Runner


async def ask_about(runner: Runner, judged: Judged) -> Judged:
    """Ask the agent what an attempt taught, where that is wanted and paid for."""
    config, begun = runner.config.learning, judged.begun
    analysis = judged.step.analysis
    ended = judged.step.verdict.passed or analysis.story_claimed or not analysis.progress
    unwanted = not (config.enabled and config.ask_agent) or begun.story is None
    if unwanted or not ended or analysis.outcome.is_infrastructure or runner.stop.requested:
        return judged
    from ralphloop.learning.ask import ask
    from ralphloop.loop.agent import request_for

    notes, usage = await ask(
        begun.member.agent,
        request_for(runner, begun, budget_usd=config.ask_budget_usd),
        outcome="passed" if judged.step.verdict.passed else "failed",
        said=judged.result.response.final_text or "",
        checks=judged.step.iteration.evidence.checks or (),
        transcript=begun.transcript.with_suffix(".ask.log"),
        stop=runner.stop,
    )
    return msgspec.structs.replace(judged, notes=notes, asking=usage)


def learn_from(runner: Runner, judged: Judged) -> None:
    """Write down what an attempt taught, and aggregate every few stories."""
    config, begun = runner.config.learning, judged.begun
    silent = (
        judged.step.analysis.outcome is Outcome.EMPTY and not judged.step.iteration.changed.count
    )
    if not config.enabled or begun.story is None or silent:
        return
    from ralphloop.learning.capturing import capture
    from ralphloop.learning.publish import after_story
    from ralphloop.redaction import secret_values

    capture(
        runner.setup.project,
        runner.journal,
        runner.run,
        begun.number,
        begun.story,
        commit=_own_commit(runner, judged),
        secrets=secret_values(runner.setup.options.env),
    )
    if runner.session.story(begun.story.id).standing is Standing.OPEN:
        return
    ended = sum(s.standing is not Standing.OPEN for s in runner.session.stories.values())
    after_story(runner.setup.project, config, ended_stories=ended, now=runner.clock())


def _own_commit(runner: Runner, judged: Judged) -> str:
    """The commit made for the story, else the agent's last one for it; none before it passed."""
    from ralphloop.repo.commit import find_commit

    repo, begun = runner.setup.repo, judged.begun
    state = runner.session.story(begun.story.id if begun.story else None)
    if repo is None or state.standing is not Standing.PASSED:
        return ""
    agents = state.end_head if state.end_head != state.start_head else ""
    return find_commit(repo, run=runner.run, iteration=begun.number) or agents


def publish_learned(runner: Runner, tell: Callable[[str], None]) -> None:
    """Skills and the managed block, in a commit of their own, when a run ended by itself."""
    if runner.stop.requested or not runner.session.number:
        return
    from ralphloop.learning.publish import at_end

    for line in at_end(
        runner.setup.project,
        runner.setup.repo,
        runner.config.learning,
        run=runner.run,
        commit=runner.config.git.commit is CommitPolicy.STORY,
        now=runner.clock(),
    ):
        tell(line)
