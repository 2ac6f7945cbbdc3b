"""What a story list is likely to be missing, though it can be read.

A story that nobody can check passes by being claimed; one that is two stories fits in no context;
one that leans on "the above" without saying so runs too early.  Words are few on purpose: a linter
that cries wolf is switched off.  A list that is not in English is judged by its form alone.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from ralphloop.core.model import Story, StoryList
from ralphloop.stories.names import label, quoted
from ralphloop.stories.sample import sample_ids
from ralphloop.stories.shapes import Listing, is_quality_gate
from ralphloop.text.plain import closest

MOST_CRITERIA = 12  # without the usual gates; of 289 stories in public lists few have more
MOST_PLACES = 12
LONGEST_DESCRIPTION = 3_000

# Every key that is read somewhere, and those that tools of this kind write for themselves.
KNOWN_KEYS = frozenset(
    "id title description acceptanceCriteria acceptance_criteria priority passes notes dependsOn"
    " depends_on dependencies parent_spec parentSpec verify status exit_signal tasks context"
    " execution touches machine labels estimate verifyTried source".split()
)
_ROOT_KEYS = frozenset(
    "$schema project name projectName description branchName branch_name userStories stories tasks"
    " version metadata".split()
)
_WORDS = json.loads((files("ralphloop.stories") / "data" / "words.json").read_text("utf-8"))


def _words(*kinds: str, begin: str = r"\b", end: str = r"\b") -> re.Pattern[str]:
    listed = "|".join(word for kind in kinds for word in _WORDS[kind])
    return re.compile(f"{begin}(?:{listed}){end}", re.IGNORECASE)


_VAGUE = _words("vague", end=r"(?:\W|$)")
_LEANING = _words("leaning")
_WHOLE = _words("whole")
# Makes a criterion checkable, whatever else it says; a place alone does not say what is seen there.
_FACTS = _words("facts", begin=r"[`\"'\d/=<>]|\b")
_PLACES = _words("facts", "places", begin=r"[`\"'\d/=<>]|\w{2}\.[a-z]{1,4}\b|::|\b")
_FIRST = _words("verbs", begin="^")
_SECOND = _words("verbs", "later", begin=r"(?:,| and| as well as|;|\+)\s+")
_NAMED_STORY = re.compile(r"\b[A-Za-z]{1,12}-\d{1,6}\b")
_ASIDE = re.compile(r"\([^)]{0,200}\)")
_NOT_READ = " is not read"
_SPLIT = "split it: one context must hold the whole of it"


class Remark(NamedTuple):
    story: str  # empty: the file itself
    words: str
    fix: str


def remarks(stories: StoryList, listing: Listing) -> Iterator[Remark]:
    """Everything worth a second look, in file order; what has passed is left alone."""
    yield from _unknown("", listing.root, _ROOT_KEYS)
    open_ids = {story.id for story in stories.stories if not story.passes}
    samples = set(sample_ids(listing))
    for story, raw in zip(stories.stories, listing.entries, strict=False):
        if story.passes:
            continue
        if story.id in samples:
            fix = 'put yours in its place: ralph stories add "What you want"'
            yield Remark(story.id, "is the sample of `ralph init`, not yours", fix)
        if isinstance(raw, dict):
            yield from _unknown(story.id, raw, KNOWN_KEYS)
            if str(raw.get("verifyTried", "")).startswith("green"):
                words = "its verify was green before anything was done: it proves nothing"
                fix = "give it a command that is red until the story is done"
                yield Remark(story.id, words, fix)
        everything = [one for one in story.touches if not one.strip("*./ ")]
        if everything or len(story.touches) > MOST_PLACES:
            words = quoted(everything[0]) if everything else f"{len(story.touches)} places"
            yield Remark(story.id, f"touches {words}", _SPLIT)
        yield from remarks_on(story, open_ids)


def in_brief(found: Sequence[Remark], most: int = 3) -> list[str]:
    """The first few as lines, what is not read at all before the rest, and how to see them all."""
    ordered = sorted(found, key=lambda remark: not remark.words.endswith(_NOT_READ))
    lines = list(as_lines(ordered[:most]))
    if len(ordered) > most:
        lines.append(f"{len(ordered) - most} more: `ralph stories check` shows all")
    return lines


def _unknown(story: str, raw: Mapping[object, object], known: frozenset[str]) -> Iterator[Remark]:
    for key in map(str, raw):
        if key in known or key.startswith(("_", "$", "x-")):
            continue
        if meant := closest(key, known, 0.75):
            yield Remark(story, f"{quoted(key)}{_NOT_READ}", f"did you mean {quoted(meant)}?")


def remarks_on(story: Story, open_ids: set[str]) -> Iterator[Remark]:
    """What is worth a second look in one story, beside others that are open."""
    if not story.criteria and story.verify is None:
        fix = "say what will be seen when it is done, or give it a verify command"
        yield Remark(story.id, "has no acceptance criteria", fix)
    for criterion in story.criteria:
        if words := vague(criterion):
            fix = "name a test, a command or something that can be observed"
            yield Remark(story.id, f"{quoted(criterion)} cannot be checked: {words}", fix)
    own = [one for one in story.criteria if not is_quality_gate(one)]
    if len(own) > MOST_CRITERIA:
        yield Remark(story.id, f"has {len(own)} acceptance criteria", _SPLIT)
    title = _ASIDE.sub("", story.title)
    if _FIRST.search(title) and _SECOND.search(title):
        yield Remark(story.id, f"{quoted(story.title)} is two stories", _SPLIT)
    if found := _WHOLE.search(story.title):
        yield Remark(story.id, f"{quoted(found[0])} is a whole project", _SPLIT)
    if len(story.description) > LONGEST_DESCRIPTION:
        words = f"has a description of {len(story.description):,} characters"
        yield Remark(story.id, words, f"{_SPLIT}, or move it to a parent_spec")
    text = "\n".join((story.title, story.description, *story.criteria))
    for found in _LEANING.finditer(text):
        named = _NAMED_STORY.search(found[0])
        known = open_ids - {story.id, *story.depends_on} if named else set()
        if (named[0] in known) if named and story.depends_on else not story.depends_on:
            fix = "name the story in dependsOn, or say what is meant"
            yield Remark(story.id, f"leans on another story: {quoted(found[0])}", fix)
            break


def is_observable(text: str) -> bool:
    """Whether it names something that can be seen from outside."""
    return _PLACES.search(text) is not None


def vague(criterion: str) -> str:
    """Why nobody could check it; empty where one can."""
    if len(criterion.strip()) < 8:
        return "it is too short"
    found = _VAGUE.search(criterion)
    if found and not _FACTS.search(criterion.replace(found[0], " ")):
        return f"{quoted(found[0].strip())} is in the eye of the beholder"
    return ""


def as_lines(found: Sequence[Remark]) -> Iterator[str]:
    for remark in found:
        where = f"{label(remark.story)}: " if remark.story else ""
        yield f"{where}{remark.words}; {remark.fix}"
