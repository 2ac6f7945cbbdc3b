"""One iteration: what it starts with, what comes of it, and what is kept of it.

It is kept as JSON without defaults, so that what an older version wrote loads as well: keys are
only ever added, texts are bounded.  `Start` is written ahead, and so is each `Effect`, what is owed
to the user's repository in this order, so that a successor can do again what a crash cut off.
"""

from typing import Self

import msgspec

from ralphloop.core.grading import StoryVerdict
from ralphloop.core.model import (
    NO_LIMIT,
    Analysis,
    ChangedFiles,
    Decision,
    Evidence,
    ExitDecision,
    Outcome,
    ProcessEnd,
    RateLimit,
    Response,
    Story,
    ToolCall,
    Usage,
    Value,
)
from ralphloop.core.policy import Limits, Policy
from ralphloop.core.progress import Footprint, Progress
from ralphloop.core.run_state import StoryState
from ralphloop.core.sentences import NO_STATUS_BLOCK
from ralphloop.core.totals import Totals, Windows


class Effect(Value, tag_field="kind"):
    """One change outside of the journal; doing it twice does no harm."""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class MarkStory(Effect, kw_only=True, tag="mark"):
    """The story's `passes` in the story file."""

    story: str = ""


class AddProgress(Effect, kw_only=True, tag="progress"):
    at: float = 0.0
    task: str = ""
    outcome: str = ""
    summary: str = ""


class SaveLeftovers(Effect, kw_only=True, tag="set_aside"):
    """Save what the story left behind, and clean up after it."""

    story: str = ""
    tree: str = ""  # where it began
    head: str = ""


class CommitStory(Effect, kw_only=True, tag="commit"):
    story: str = ""
    title: str = ""
    grade: str = ""
    tree: str = ""  # that was checked; empty: nothing had changed
    head: str = ""  # what the commit is made on; empty: not known


AnyEffect = MarkStory | AddProgress | SaveLeftovers | CommitStory


_KEPT_TEXT = 8_000
_GIVEN_WHEN_ASKED = f"{NO_STATUS_BLOCK}; it gave one when asked"


class LearningShare(Value, kw_only=True):
    """What the prompt carries of earlier learning, and what the agent reads besides."""

    ids: tuple[str, ...] = ()  # of patterns, in the prompt or in files the agent loads
    tokens: int = 0  # that the prompt is longer
    held_out: bool = False
    trial: bool = False  # the story takes part in the comparison, on either side


class LearnedPart(Value, kw_only=True):
    text: str = ""
    invited: str = ""  # how the agent is asked for what it learns
    share: LearningShare = LearningShare()


class PromptSize(Value, kw_only=True):
    characters: int = 0
    left_out: tuple[str, ...] = ()


class AgentClocks(Value, kw_only=True):
    """By which names it is known when an agent may be started again."""

    of_limit: str = ""  # a usage limit is the agent's, whatever its model
    of_failure: str = ""  # what cannot work at all may be this agent with this model


class Start(Value, kw_only=True):
    story: Story | None = None
    state: StoryState = StoryState()  # of the story, as the start found it
    tree: str = ""
    head: str = ""
    agent: str = ""
    model: str = ""  # that was asked for
    clocks: AgentClocks = AgentClocks()
    prompt: PromptSize = PromptSize()
    learning: LearningShare = LearningShare()

    @property
    def party(self) -> str:
        """Whose subscription it counts against: the agent, with its account where that is known."""
        return self.clocks.of_limit or self.agent


class Result(Value, kw_only=True):
    """An agent that has ended: how, with which words, and what it left behind."""

    response: Response
    end: ProcessEnd = ProcessEnd()
    stopped_because: str = ""  # in words; empty where it ended by itself
    leftovers: tuple[str, ...] = ()  # what had to be stopped after it was done, by name
    stderr_tail: str = ""
    can_be_asked: bool = False  # its conversation can be gone on with, now
    asked: Response | None = None  # what it answered when it was asked for the missing block
    machine: str = ""  # that it worked on; empty: this one
    account: str = ""  # that the agent used there; empty: nobody said

    @property
    def is_silent(self) -> bool:
        """Nothing came of it until the stall clock ran out, not even word of a failing API."""
        return self.end.stalled and not self.response.model_output and not self.response.retrying

    @property
    def heard(self) -> Response:
        """The answer, ended by the block that came when it was asked for."""
        if self.asked is None or self.asked.status is None:
            return self.response
        return msgspec.structs.replace(
            self.response,
            status=self.asked.status,
            status_is_final=self.asked.status_is_final,
            warnings=(*self.response.warnings, _GIVEN_WHEN_ASKED),
        )


class Assessment(Value, kw_only=True):
    """A start that has ended, with all that is known of it while it is judged."""

    start: Start
    result: Result
    evidence: Evidence
    policy: Policy
    moved: Progress
    verdict: StoryVerdict
    analysis: Analysis
    used: Usage  # by this start alone
    session_usage: Usage = Usage()  # what its conversation reported up to there
    totals: Totals = Totals()  # what the run has used with it
    trail: tuple[Footprint, ...] = ()  # of its story, this start included

    @property
    def passed(self) -> bool:
        return bool(self.evidence.stories_passed)

    @property
    def findings(self) -> tuple[str, ...]:
        """What was seen beside the claim and what it has to answer for, each once."""
        doubts = self.evidence.doubts or ()
        opinions = self.evidence.opinions or ()
        found = (*self.evidence.remarks, *doubts, *opinions, *self.verdict.asked)
        return tuple(dict.fromkeys(found))

    @property
    def may_end_run(self) -> bool:
        """The permission of a task (tasks.yaml) that was claimed and has passed."""
        return self.evidence.stories.exit_signal and self.analysis.story_claimed and self.passed

    @property
    def counts(self) -> bool:
        """It is an iteration: the agent worked, or it was paid for."""
        return self.result.response.model_output or not self.analysis.says_nothing


class KeptAnswer(Response, kw_only=True):
    """What is kept of the agent's answer; the transcript has all of it."""

    reader: str = ""
    outcome: Outcome = Outcome.COMPLETED
    final_text: str = ""  # the last words, whatever they stood in
    has_final_text: bool = True  # False: the stream ended without a result
    is_cut: bool = False  # the words were longer than what is kept
    tool_calls: tuple[ToolCall, ...] = msgspec.field(default=(), name="tools")
    tool_call_count: int = msgspec.field(default=0, name="tool_calls")
    resets_at: int | None = None
    windows: Windows = ()  # of its subscription, as it told them

    @classmethod
    def of(cls, response: Response) -> Self:
        words = response.final_words
        kept = {
            "text": "",
            "final_text": words[-_KEPT_TEXT:],
            "has_final_text": response.final_text is not None,
            "is_cut": len(words) > _KEPT_TEXT,
            "tool_calls": response.tool_calls[-30:],
            "denials": response.denials[:20],
            "resets_at": response.rate_limit.resets_at,
            "windows": response.rate_limit.windows,
            "rate_limit": NO_LIMIT,
        }
        return cls(**(msgspec.structs.asdict(response) | kept))

    def response(self) -> Response:
        """The answer again, as far as it was kept."""
        told = {name: getattr(self, name) for name in Response.__struct_fields__}
        limit = RateLimit(resets_at=self.resets_at, windows=self.windows)
        final = self.final_text if self.has_final_text else None
        told |= {"final_text": final, "text": self.final_text, "rate_limit": limit}
        return Response(**told)


class Iteration(Value, kw_only=True):
    agent: str = ""
    model: str = ""  # that was asked for; the answer names the one that was used
    clocks: AgentClocks = AgentClocks()
    response: KeptAnswer = KeptAnswer()
    asked: KeptAnswer | None = None  # what came when its missing status block was asked for
    end: ProcessEnd = ProcessEnd()
    stopped_because: str = ""
    evidence: Evidence = Evidence()
    changed: ChangedFiles = ChangedFiles()
    analysis: Analysis = Analysis()
    verdict: StoryVerdict = StoryVerdict()
    decision: Decision = Decision(word=ExitDecision.CONTINUE)
    findings: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    stderr_tail: str = ""
    prompt: PromptSize = PromptSize()
    learning: LearningShare = LearningShare()
    story: Story | None = None  # as it was then, without its long texts
    limits: Limits = Limits()  # in force
    machine: str = ""  # that its agent worked on; empty: this one

    @property
    def by(self) -> str:
        return f"{self.agent} {self.model}".rstrip()

    @property
    def why_it_ended(self) -> str:
        """In one sentence, ours before the agent's."""
        return self.stopped_because or self.response.reason


def kept(one: Assessment, decision: Decision) -> Iteration:
    start = one.start
    result = one.result
    evidence = one.evidence
    story = one.start.story
    if story is not None:
        short = {"title": story.title[:200], "description": "", "criteria": (), "notes": ""}
        story = msgspec.structs.replace(story, **short)
    checks = evidence.checks
    if checks is not None:  # without the names of all tests, of which the run keeps its newest
        checks = tuple(msgspec.structs.replace(result, report=None) for result in checks)
    return Iteration(
        agent=start.agent,
        model=start.model,
        clocks=start.clocks,
        response=KeptAnswer.of(result.response),
        asked=KeptAnswer.of(result.asked) if result.asked else None,
        end=result.end,
        stopped_because=result.stopped_because,
        evidence=msgspec.structs.replace(evidence, changed=ChangedFiles(), checks=checks),
        changed=evidence.changed,
        analysis=one.analysis,
        verdict=one.verdict,
        decision=decision,
        findings=one.findings,
        tolerated=evidence.comparison.tolerated_failures,
        leftovers=result.leftovers,
        stderr_tail=result.stderr_tail[-2_000:],
        prompt=start.prompt,
        learning=start.learning,
        story=story,
        limits=one.policy.limits,
        machine=result.machine,
    )
