"""One row a story: its mark, where it stands in words, what the last iteration came to.  Pure."""

from __future__ import annotations

from ralphloop.core.grading import Grade
from ralphloop.core.story_state import Standing
from ralphloop.night.values import Night, StoryLook
from ralphloop.text.plain import one_line
from ralphloop.ui.monitor import paint
from ralphloop.ui.monitor.values import StoryRow, Tone

_WEAK_GRADES = (Grade.CLAIMED, Grade.NEEDS_REVIEW, "")


def story_rows(night: Night) -> tuple[StoryRow, ...]:
    """The stories of the list, then those only the journal remembers."""
    passed = {look.story.id for look in night.stories if look.story.passes}
    newest = night.current if night.is_live else None
    current = (newest.story or "") if newest else None
    return tuple(_row(look, passed, current) for look in night.stories)


def _row(look: StoryLook, passed: set[str], current: str | None) -> StoryRow:
    mark, words, tone = _standing(look, passed, current)
    return StoryRow(
        key=look.story.id,
        id=one_line(look.story.id, 60),
        title=one_line(look.story.title, 200),
        mark=mark,
        standing=words,
        tone=tone,
        attempts=look.failed,
        verdict=one_line(look.state.reason, 300),
    )


def _standing(look: StoryLook, passed: set[str], current: str | None) -> tuple[str, str, Tone]:
    if look.story.id == current and look.standing is Standing.OPEN:
        return paint.RUNNING, "running", Tone.BUSY
    if look.standing is Standing.PASSED:
        mark = paint.REVIEW if look.grade == Grade.NEEDS_REVIEW else paint.PASSED
        tone = Tone.WARN if look.grade in _WEAK_GRADES else Tone.GOOD
        return mark, one_line(look.grade, 20) or "passed", tone
    if look.standing is Standing.BLOCKED:
        return paint.BLOCKED, "waits for you", Tone.WARN
    if look.standing is Standing.SET_ASIDE:
        return paint.ASIDE, "set aside", Tone.WARN
    needs = [one_line(name, 20) for name in look.story.depends_on if name not in passed]
    if needs:
        more = f" +{len(needs) - 1}" if len(needs) > 1 else ""
        return paint.WAITING, f"waits on {needs[0]}{more}", Tone.QUIET
    return paint.OPEN, "begun" if look.state.iterations else "open", Tone.PLAIN
