"""What a person should look at after a run, as SARIF, which code hosts show beside the lines.

A finding stands at the file it names, where that is one of the repository, else at its story in the
story file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ralphloop import __version__
from ralphloop.ui.report.values import Group, StoryLine

_PLACE = re.compile(
    r"(?<![\w./-])((?:[\w-]{1,80}/){0,12}[\w.-]{1,100}\.\w{1,8})(?::{1,2}(\d{1,6}))?"
)
_MOST = 200
_RULES = {
    "needs-review": "A story passed, and a person should look",
    "waiting": "A story waits for a person",
    "not-done": "A story was set aside",
    "look-at": "A test expects something else now, or is gone",
    "doubt": "The agent wants a person to look",
}
_GROUPS = {"review": "needs-review", "waiting": "waiting", "failed": "not-done"}
_LEVELS = {"needs-review": "warning", "not-done": "warning", "waiting": "warning"}


class StoryPlace(NamedTuple):
    """Where stories stand."""

    file: str  # from the repository's root
    lines: Mapping[str, int]


class _Finding(NamedTuple):
    rule: str
    words: str
    story: StoryLine


def as_sarif(
    groups: Iterable[Group], place: StoryPlace, is_file: Callable[[str], bool]
) -> dict[str, object]:
    """The findings of a report; `is_file` tells whether a path is one of the repository."""
    found = list(_findings(groups))[:_MOST]
    rules = [{"id": name, "shortDescription": {"text": _RULES[name]}} for name in _RULES]
    driver = {"name": "ralph", "semanticVersion": __version__, "rules": rules}
    results = [_result(one, place, is_file) for one in found]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _findings(groups: Iterable[Group]) -> Iterator[_Finding]:
    for group in groups:
        rule = _GROUPS.get(group.key)
        for story in group.stories:
            if story.accepted:
                continue
            if rule is not None:
                yield _Finding(rule, story.reason or _RULES[rule], story)
            for words in story.look_at:
                yield _Finding("look-at", words, story)
            for words in story.doubts:
                yield _Finding("doubt", words, story)


def _result(one: _Finding, place: StoryPlace, is_file: Callable[[str], bool]) -> dict[str, object]:
    file = place.file
    line = place.lines.get(one.story.id, 1)
    for named in _PLACE.finditer(one.words):
        if is_file(named[1]):
            file = named[1]
            line = max(1, int(named[2] or 1))
            break
    where = {"artifactLocation": {"uri": file}, "region": {"startLine": line}}
    return {
        "ruleId": one.rule,
        "level": _LEVELS.get(one.rule, "note"),
        "message": {"text": f"{one.story.id} {one.story.title}: {one.words}"},
        "locations": [{"physicalLocation": where}],
    }
