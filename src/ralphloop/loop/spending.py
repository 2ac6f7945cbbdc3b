"""What one start cost.  Pure.

Claude reports the cost of a resumed conversation as a whole, so what was known of it is taken off;
a killed start is estimated from its stream.
"""

from __future__ import annotations

from ralphloop.core.model import Analysis, Evidence, Response, StatusBlock
from ralphloop.journal.records import Spent
from ralphloop.loop.story_state import StoryState


def cost_of(response: Response, before: StoryState) -> float:
    """Dollars this start added."""
    reported = response.usage.cost_usd or 0.0
    resumed = bool(before.session_id) and response.session_id == before.session_id
    return max(0.0, reported - before.session_cost) if resumed else max(0.0, reported)


def spent(response: Response, analysis: Analysis, evidence: Evidence, before: StoryState) -> Spent:
    """What the start adds to the totals."""
    usage = response.usage
    block = response.status or StatusBlock()
    return Spent(
        counted=response.model_output or not analysis.outcome.is_infrastructure,
        cost_usd=cost_of(response, before),
        cost_estimated=usage.estimated,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        tasks_completed=evidence.stories_passed or 0,
        files_modified=evidence.files_changed or block.files_modified or 0,
        commits=evidence.commits or 0,
    )
