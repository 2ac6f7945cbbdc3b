"""One iteration: what it starts with, what comes of it, and what is kept of it.

`Start` is written ahead, `Result` is what the agent gave, `Evidence` (in `model`) what we measured;
`Iteration` is all of it with the verdict.  The journal stores it as JSON without defaults, so what
an older version wrote loads as well; keys are only ever added.  Texts are bounded.
"""

from __future__ import annotations

import msgspec

from ralphloop.core.grading import StoryVerdict
from ralphloop.core.limits import Limits
from ralphloop.core.model import (
    Analysis,
    ChangedFiles,
    Decision,
    Denial,
    Evidence,
    ExitDecision,
    Outcome,
    ProcessEnd,
    RateLimit,
    Response,
    ToolCall,
    Usage,
    Value,
)
from ralphloop.core.story import Story
from ralphloop.core.story_state import StoryState
from ralphloop.text.status import StatusBlock

_KEPT_TEXT = 8_000
_KEPT_TOOLS = 30
_KEPT_DENIALS = 20
_KEPT_STDERR = 2_000
_KEPT_TITLE = 200
_GIVEN_WHEN_ASKED = "no status block (RALPH_STATUS) in the answer; it gave one when asked"


class LearningShare(Value, kw_only=True):
    """What the prompt carried of earlier learning, and what the agent answered about this start."""

    ids: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    tokens: int = 0
    held_out: bool = False
    asked: tuple[object, ...] = ()  # notes, in the shape `learning` gives them


class Carried(Value, kw_only=True):
    """What one prompt carries, and what the agent reads besides."""

    text: str = ""
    ids: tuple[str, ...] = ()  # of patterns, in the prompt or in files the agent loads
    skills: tuple[str, ...] = ()  # names of skills the agent loads
    tokens: int = 0  # that the prompt is longer
    held_out: bool = False


class PromptSize(Value, kw_only=True):
    characters: int = 0
    left_out: tuple[str, ...] = ()


class Start(Value, kw_only=True):
    """An iteration before the agent runs."""

    number: int = 0
    story: Story | None = None
    state: StoryState = StoryState()  # of the story, as the start found it
    tree: str = ""
    head: str = ""
    agent: str = ""
    prompt: PromptSize = PromptSize()
    learning: LearningShare = LearningShare()


class Result(Value, kw_only=True):
    """An agent that has ended: how, with which words, and what it left behind."""

    response: Response
    end: ProcessEnd = ProcessEnd()
    stopped_because: str = ""  # in words; empty where it ended by itself
    leftovers: tuple[str, ...] = ()  # what had to be stopped after it was done, by name
    stderr_tail: str = ""
    can_be_asked: bool = False  # its conversation can be gone on with, now
    asked: Response | None = None  # what it answered when it was asked for the missing block

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


class KeptAnswer(Value, kw_only=True):
    """What is kept of the agent's answer; the transcript has all of it."""

    reader: str = ""
    outcome: Outcome = Outcome.COMPLETED
    reason: str = ""  # why it ended as it did
    status: StatusBlock | None = None
    status_is_final: bool = False
    final_text: str = ""
    has_final_text: bool = True  # False: the stream ended without a result
    is_cut: bool = False  # the words were longer than what is kept
    text_chars: int = 0
    session_id: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    tool_calls: int = 0
    tools: tuple[ToolCall, ...] = ()  # the last ones
    denials: tuple[Denial, ...] = ()
    resets_at: int | None = None
    model_output: bool = False
    retrying: bool = False
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, response: Response) -> KeptAnswer:
        words = response.final_text if response.final_text is not None else response.text
        return cls(
            reader=response.reader,
            outcome=response.outcome,
            reason=response.reason,
            status=response.status,
            status_is_final=response.status_is_final,
            final_text=words[-_KEPT_TEXT:],
            has_final_text=response.final_text is not None,
            is_cut=len(words) > _KEPT_TEXT,
            text_chars=response.text_chars,
            session_id=response.session_id,
            model=response.model,
            usage=response.usage,
            tool_calls=response.tool_call_count,
            tools=response.tool_calls[-_KEPT_TOOLS:],
            denials=response.denials[:_KEPT_DENIALS],
            resets_at=response.rate_limit.resets_at if response.rate_limit else None,
            model_output=response.model_output,
            retrying=response.retrying,
            warnings=response.warnings,
        )

    def response(self) -> Response:
        """The answer again, as far as it was kept."""
        return Response(
            reader=self.reader,
            outcome=self.outcome,
            reason=self.reason,
            status=self.status,
            status_is_final=self.status_is_final,
            final_text=self.final_text if self.has_final_text else None,
            text=self.final_text,
            text_chars=self.text_chars,
            session_id=self.session_id,
            model=self.model,
            usage=self.usage,
            tool_calls=self.tools,
            tool_call_count=self.tool_calls,
            denials=self.denials,
            rate_limit=RateLimit(resets_at=self.resets_at) if self.resets_at else None,
            model_output=self.model_output,
            retrying=self.retrying,
            warnings=self.warnings,
        )


class Iteration(Value, kw_only=True):
    """Everything worth knowing about a start later."""

    agent: str = ""
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

    @property
    def why_it_ended(self) -> str:
        """In one sentence, ours before the agent's."""
        return self.stopped_because or self.response.reason


def kept(
    start: Start,
    result: Result,
    evidence: Evidence,
    *,
    analysis: Analysis,
    verdict: StoryVerdict,
    decision: Decision,
    findings: tuple[str, ...],
    limits: Limits,
) -> Iteration:
    """The iteration as the journal keeps it."""
    return Iteration(
        agent=start.agent,
        response=KeptAnswer.of(result.response),
        asked=KeptAnswer.of(result.asked) if result.asked else None,
        end=result.end,
        stopped_because=result.stopped_because,
        evidence=msgspec.structs.replace(evidence, changed=ChangedFiles()),
        changed=evidence.changed,
        analysis=analysis,
        verdict=verdict,
        decision=decision,
        findings=findings,
        tolerated=evidence.comparison.tolerated_failures,
        leftovers=result.leftovers,
        stderr_tail=result.stderr_tail[-_KEPT_STDERR:],
        prompt=start.prompt,
        learning=start.learning,
        story=_in_short(start.story),
        limits=limits,
    )


def _in_short(story: Story | None) -> Story | None:
    if story is None:
        return None
    short = story.title[:_KEPT_TITLE]
    return msgspec.structs.replace(story, title=short, description="", criteria=(), notes="")
