"""What shows that a story is done, as a table for those who asked for it."""

from collections.abc import Iterable

from ralphloop.core.criteria import VERIFY_SOURCE, CriterionEvidence
from ralphloop.core.sentences import short_name
from ralphloop.night.values import StoryLook
from ralphloop.repo.named import file_of
from ralphloop.text.plain import one_line
from ralphloop.ui.report.render import escaped

_LONGEST_CELL = 200


def criteria_table(criteria: Iterable[CriterionEvidence]) -> str:
    """Criterion by criterion what shows it, in Markdown; empty where there is no criterion."""
    rows = ["| " + " | ".join(map(_cell, _cells(one))) + " |" for one in criteria]
    if not rows:
        return ""
    return "\n".join(["| criterion | shown by | in | result |", "|---|---|---|---|", *rows])


def _cells(one: CriterionEvidence) -> list[str]:
    if not one.source:
        return [one.criterion, "no test speaks of it", "", ""]
    result = f"{one.before} before, {one.after} after" if one.before else one.after
    if one.source == VERIFY_SOURCE:
        return [one.criterion, "its verify command", "", result]
    return [one.criterion, short_name(one.source), file_of(one.source), result]


def _cell(text: str) -> str:
    return escaped(one_line(text, _LONGEST_CELL))


def tables_of(stories: Iterable[StoryLook]) -> str:
    """The tables of all stories that have one, below a heading; empty where none has."""
    parts = []
    for seen in stories:
        table = criteria_table(seen.criteria)
        if table and seen.grade:
            name = escaped(one_line(f"{seen.story.id} {seen.story.title}", 120))
            covered = f", {seen.coverage.words}" if seen.coverage.words else ""
            parts.append(f"**{name}** ({seen.grade}{covered})\n\n{table}")
    return "\n\n".join(["## Criteria, and what shows them", *parts]) if parts else ""
