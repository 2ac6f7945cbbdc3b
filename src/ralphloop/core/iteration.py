"""One finished iteration as it is kept: what was said, measured and decided, in one value.

The journal stores it as JSON without defaults, so what an older version wrote loads as well; keys
are only ever added.  Texts are bounded before they come here.
"""

from __future__ import annotations

from ralphloop.core.grading import StoryVerdict
from ralphloop.core.model import (
    Analysis,
    Decision,
    Denial,
    Evidence,
    ExitDecision,
    ProcessEnd,
    ToolCall,
    Usage,
    Value,
)


class Said(Value, kw_only=True):
    """What is kept of the agent's answer; the transcript has all of it."""

    reader: str = ""
    reason: str = ""  # why it ended as it did
    final_text: str = ""
    text_chars: int = 0
    session_id: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    tool_calls: int = 0
    tools: tuple[ToolCall, ...] = ()  # the last ones
    denials: tuple[Denial, ...] = ()
    resets_at: int | None = None


class ChangedFiles(Value, kw_only=True):
    """The size of what changed."""

    count: int = 0
    insertions: int | None = None
    deletions: int | None = None
    subjects: tuple[str, ...] = ()  # of the agent's own commits


class LearningShare(Value, kw_only=True):
    """What the prompt carried of earlier learning, and what the agent answered about this start."""

    ids: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    tokens: int = 0
    held_out: bool = False
    asked: tuple[object, ...] = ()  # notes, in the shape `learning` gives them


class PromptSize(Value, kw_only=True):
    characters: int = 0
    left_out: tuple[str, ...] = ()


class Iteration(Value, kw_only=True):
    """Everything worth knowing about a start later."""

    agent: str = ""
    response: Said = Said()
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

    @property
    def why_it_ended(self) -> str:
        """In one sentence, ours before the agent's."""
        return self.stopped_because or self.response.reason
