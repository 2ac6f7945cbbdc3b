"""How one start is counted.

Some agents count a resumed conversation as a whole; then what was known of it is taken off.  What
no result reports is estimated from the stream by the reader.  An agent that was asked for its
status block has answered twice in one start (`asked`), and both count.
"""

from __future__ import annotations

import msgspec

from ralphloop.core.model import TOKENS, Analysis, Evidence, Response, Usage
from ralphloop.core.story_state import StoryState
from ralphloop.core.totals import Spent
from ralphloop.text.status import StatusBlock


def used(response: Response, before: StoryState, asked: Response | None = None) -> Usage:
    """What this start alone used."""
    own = _alone(response, before)
    return own + _alone(asked, _answered(response, before)) if asked else own


def _alone(response: Response, before: StoryState) -> Usage:
    usage, known = response.usage, before.session_usage
    resumed = bool(before.session_id) and response.session_id == before.session_id
    if not (usage.cumulative and resumed):
        return usage
    tokens = {name: max(0, getattr(usage, name) - getattr(known, name)) for name in TOKENS}
    cost = usage.cost_usd
    if cost is not None:
        cost = max(0.0, cost - (known.cost_usd or 0.0))
    return msgspec.structs.replace(usage, **tokens, cost_usd=cost)


def _answered(response: Response, before: StoryState) -> StoryState:
    """The story between the answer and what came when its block was asked for."""
    known, named = conversation(response, before), response.session_id or before.session_id
    return msgspec.structs.replace(before, session_id=named, session_usage=known)


def conversation(response: Response, before: StoryState, asked: Response | None = None) -> Usage:
    """What the conversation reported up to here; a start that names no total only adds to it."""
    if asked is not None:
        return conversation(asked, _answered(response, before))
    resumed = bool(before.session_id) and response.session_id in (None, before.session_id)
    if response.usage.cumulative or not resumed:
        return response.usage
    return before.session_usage + response.usage


def cost_of(response: Response, before: StoryState, asked: Response | None = None) -> float:
    """Dollars this start added."""
    return max(0.0, used(response, before, asked).cost_usd or 0.0)


def is_unpriced(response: Response) -> bool:
    """True where the model was reached and nobody says what that cost."""
    reached = response.model_output or response.usage.total_tokens > 0
    return reached and response.usage.cost_usd is None


def spent(usage: Usage, response: Response, analysis: Analysis, evidence: Evidence) -> Spent:
    """What the start adds to the totals."""
    block = response.status or StatusBlock()
    return Spent(
        counted=response.model_output or not analysis.outcome.is_infrastructure,
        cost_usd=max(0.0, usage.cost_usd or 0.0),
        cost_estimated=usage.estimated,
        unpriced=int(is_unpriced(response)),
        tasks_completed=evidence.stories_passed or 0,
        files_modified=evidence.files_changed or block.files_modified or 0,
        commits=evidence.commits or 0,
        **{name: getattr(usage, name) for name in TOKENS},
    )
