"""What was given in words, as `--json` says it."""

from ralphloop.cli import output
from ralphloop.journal.records import JsonValues
from ralphloop.night.values import ErrandLook


def errand_data(errand: ErrandLook) -> JsonValues:
    """What `--json` says of something that was given in words."""
    look = errand.look
    return {
        **output.picked(look.story, "id", "title"),
        "run": errand.run.id,
        "state": look.standing,
        "grade": look.grade or None,
        "reason": look.state.reason or None,
        "ended_at": errand.run.ended_at,
        "can_continue": errand.can_continue,
    }
