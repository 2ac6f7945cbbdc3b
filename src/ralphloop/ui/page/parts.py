"""One look as pieces of HTML, each rendered once for everybody who looks.

A piece changes only when what it says changes: points in time stand in it as such, and the browser
counts from there.  Words of agents and files are one bounded line each, without secrets, and become
text by autoescape; that a form belongs to a device is filled in last (`Piece.of`).
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import FileSystemLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from ralphloop.core.proposals import USUAL_CRITERION
from ralphloop.core.totals import cost_words, money, spent_words
from ralphloop.core.work_diff import FileSide, MarkKind
from ralphloop.night.every_project import ProjectLook
from ralphloop.night.review_values import DOUBT_OF, Doubt, ReviewList, Worth
from ralphloop.night.values import (
    Advice,
    Night,
    State,
    StoryLook,
    ended_words,
    next_steps,
    open_words,
)
from ralphloop.redaction import redact
from ralphloop.text.durations import clock, format_duration, told_iso
from ralphloop.text.plain import clean, counted, number
from ralphloop.ui.monitor import paint
from ralphloop.ui.monitor.moments import Facts, StoryRow, nothing_known
from ralphloop.ui.monitor.pages import Page as Lines
from ralphloop.ui.monitor.paint import Tone
from ralphloop.ui.monitor.panels import Headline, Screen
from ralphloop.ui.page.decisions import DecidedWay, PageDecision
from ralphloop.ui.page.shown_story import ShownStory
from ralphloop.ui.report.values import Teller

# on a wide screen
LEFT = ("now", "log", "facts")
RIGHT = ("stories", "past")
NAMES = ("head", "yours", "steer", *LEFT, *RIGHT)
OF_ALL = ("summary", "projects")  # on the page of all projects
ROWS = 50  # of a list, at a time
_LOG_LINES = 30
_MOST_ASKED = 40
_MOST_LINES = 600
_LONGEST_QUESTION = 4_000
DOUBT_TONES = {
    Doubt.SENT_BACK: Tone.BAD,
    Doubt.ASKED: Tone.BAD,
    Doubt.CLAIMED: Tone.WARN,
    Doubt.CHECKED: Tone.WARN,
    Doubt.BY_HAND: Tone.QUIET,
    Doubt.VERIFIED: Tone.GOOD,
}
WORTH_TONES = {Worth.GOOD: Tone.GOOD, Worth.WEAK: Tone.WARN, Worth.BAD: Tone.BAD}
MARK_TONES = dict.fromkeys(MarkKind, Tone.WARN)
MARK_TONES |= {MarkKind.PROVES: Tone.GOOD, MarkKind.WEAKENED: Tone.BAD}
SIDE_WORDS = {FileSide.TEST: "test", FileSide.CODE: "code", FileSide.OTHER: "text"}
_SINCE = re.compile(r'(<time datetime="([0-9TZ:.-]{10,40})" data-as="since">)[^<]*(</time>)')
_FIRST = f"{paint.RUNNING}{paint.BLOCKED}{paint.REVIEW}{paint.ASIDE}{paint.OPEN}{paint.WAITING}"


class Piece(NamedTuple):
    """A part of the page, and a short word that is another one when it changes."""

    html: str
    digest: str
    blank: str  # stands where a form's word goes

    def of(self, word: str) -> str:
        """For one device, at this moment."""
        now = time.time()
        return _SINCE.sub(lambda found: _told_since(found, now), self.html).replace(
            self.blank, word
        )


def _told_since(found: re.Match[str], now: float) -> str:
    """A moment in the past told as the time since then: a browser without scripts cannot count."""
    ago = format_duration(max(0.0, now - datetime.fromisoformat(found[2]).timestamp()))
    return f"{found[1]}{ago}{found[3]}"


class ToldOnce(NamedTuple):
    """What became of a wish, told on the next page."""

    words: str
    undo: str = ""  # the story about which the decision can be undone


NOTHING_SAID = ToldOnce("")


class TriedDecision(NamedTuple):
    """A decision that did not work out, or not yet."""

    decision: PageDecision | None
    error: str = ""
    ways: Sequence[DecidedWay] = ()
    is_on_its_way: bool = False


class Painter:
    """The templates, and everything they may know."""

    def __init__(
        self, values: Sequence[str] = (), *, read_only: bool = False, is_of_all: bool = False
    ) -> None:
        environment = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._secrets = tuple(values)
        self._blank = secrets.token_hex(16)
        # The same words come again and again, and looking for secrets in them is not free.
        self.say = lru_cache(maxsize=8_192)(Teller(self._secrets))
        environment.filters |= {
            "say": self.say,
            "ended": ended_words,
            "iso": told_iso,
            "clock": lambda at: clock(at, None, "%H:%M %Z"),
            "duration": format_duration,
            "number": number,
            "money": money,
            "cost_words": cost_words,
            "spent_words": spent_words,
            "open_words": open_words,
            "counted": counted,
            "block": self._block,
            "commands": lambda text: [(part, n % 2) for n, part in enumerate(text.split("`"))],
        }
        environment.globals |= {"blank": self._blank, "read_only": read_only}
        environment.globals |= {"is_of_all": is_of_all}  # beside other projects
        environment.globals |= {"left": LEFT, "right": RIGHT}
        environment.globals |= {"doubt_tones": DOUBT_TONES, "worth_tones": WORTH_TONES}
        environment.globals |= {"mark_tones": MARK_TONES, "side_words": SIDE_WORDS}
        environment.globals |= {"usual_criterion": USUAL_CRITERION}
        self._page: Template = environment.get_template("page.html.j2")
        self._parts: Any = environment.get_template("parts.html.j2").module
        self._review: Any = environment.get_template("review.html.j2").module

    def pieces(self, facts: Facts, at: float) -> dict[str, Piece]:
        return self._pieces(NAMES, self._told(facts, at))

    def pieces_of_all(self, looks: Sequence[ProjectLook], at: float) -> dict[str, Piece]:
        """The page of all projects."""
        rows = [(one, _headline(one, at)) for one in looks]
        told = {
            "rows": rows,
            "running": sum(one.night is not None and one.night.is_live for one in looks),
            "waiting": sum(one.questions + one.to_review + one.proposed for one in looks),
        }
        return self._pieces(OF_ALL, told)

    def _pieces(self, names: Iterable[str], told: dict[str, Any]) -> dict[str, Piece]:
        found = {}
        for name in names:
            html = str(getattr(self._parts, name)(told)).strip()
            digest = hashlib.sha256(html.encode("utf-8", "replace")).hexdigest()[:12]
            found[name] = Piece(html, digest, self._blank)
        return found

    def page(self, word: str, project: str, *, said: ToldOnce = NOTHING_SAID, **more: Any) -> str:
        """A whole page; `more` says what of."""
        known: dict[str, Any] = {"pieces": None, "token": "", "title": "", "lists": ()}
        known |= {"body": "", "is_headed": False, "again": False}
        told = self._of(word, self._review.said(said))
        return self._page.render(
            project=self.say(project, 60), word=word, said=told, **(known | more)
        )

    def review_body(self, word: str, listed: ReviewList | None) -> Markup:
        """The list of what waits for a person."""
        return self._of(word, self._review.review(listed))

    def story_body(self, word: str, shown: ShownStory, decision: Markup) -> Markup:
        """One story with everything one decides by, or what is known of one that is not done."""
        if shown.review is None:
            return self._of(word, self._review.under_way(shown, decision))
        return self._of(word, self._review.under_review(shown, decision))

    def decide_body(
        self, word: str, shown: ShownStory, tried: TriedDecision | None = None
    ) -> Markup:
        """The buttons below a story; after an error with the reason and the person's words."""
        if tried is not None and tried.is_on_its_way:
            return self._of(word, self._review.on_its_way(shown))
        if shown.review is None:
            return Markup()
        told = tried or TriedDecision(None)
        html = self._review.decide(shown, told.decision, told.error, told.ways)
        return self._of(word, html)

    def _of(self, word: str, html: object) -> Markup:
        """For one device: its forms carry its word.  What is put in was escaped by the template."""
        text = str(html).strip()
        told = Piece(text, "", self._blank).of(word)
        return Markup(told)  # noqa: S704 - made by our own template

    def say_lines(self, text: str) -> str:
        """Several lines for a person, each bounded and without secrets."""
        return "\n".join(self.say(line, 500) for line in text.split("\n")[:_MOST_ASKED])

    def _block(self, text: object, limit: int = 1_200) -> str:
        """Words of others with their lines, bounded and without secrets."""
        return clean(redact(str(text)[: limit * 2], self._secrets))[:limit]

    def _told(self, facts: Facts, at: float) -> dict[str, Any]:
        """What the parts tell, cut to what can be looked at."""
        night = facts.night
        steps = () if night.is_live else next_steps(night)
        return {
            "night": night,
            "facts": facts,
            "state": Screen(facts, at).state,
            "wait": night.wait if night.state is State.WAITING else None,
            "waiting": [self._question(one) for one in night.asking[:_MOST_ASKED]],
            "waiting_count": len(night.asking),
            "review": [self._to_review(one) for one in _by_doubt(night)[:_MOST_ASKED]],
            "review_count": len(_by_doubt(night)),
            "proposals": night.proposals[:_MOST_ASKED],
            "steps": [one for one in steps if not _is_on_the_page(one)],
            "lanes": {one.iteration: one for one in night.lanes},
            "log": facts.log[-_LOG_LINES:],
            "stories": sorted(facts.stories, key=_turn)[:ROWS],
        }

    def _question(self, look: StoryLook) -> dict[str, str]:
        asked = clean(redact(look.state.reason[: _LONGEST_QUESTION * 2], self._secrets))
        return {"id": look.story.id, "title": look.story.title, "asks": asked[:_LONGEST_QUESTION]}

    def _to_review(self, look: StoryLook) -> dict[str, str]:
        doubt = DOUBT_OF.get(look.grade, Doubt.CLAIMED)
        return {
            "id": look.story.id,
            "title": look.story.title,
            "doubt": doubt,
            "tone": DOUBT_TONES[doubt],
            "gap": look.coverage.words if look.coverage.has_gap else "",
            "why": look.state.reason,
        }

    def lines(self, pages: Sequence[Lines]) -> Iterator[tuple[str, list[paint.Line]]]:
        """Pages of the monitor, the newest lines of each: words with their tone."""
        for page in pages:
            rows = page.lines[-_MOST_LINES:]
            # Secrets are looked for in all lines together: keys go over several.
            safe = redact("\n".join(map(paint.plain, rows)), self._secrets).split("\n")
            shown = []
            for at, text in enumerate(safe):
                row = rows[at] if at < len(rows) else ()
                shown.append(row if paint.plain(row) == text else paint.line(text))
            yield page.title, shown


def _is_on_the_page(step: Advice) -> bool:
    """Whether the page has a place of its own for what is advised."""
    return step.kind in ("answer", "review") or step.command == "ralph stories proposed"


def _by_doubt(night: Night) -> list[StoryLook]:
    """What waits for a person's eyes, what most needs them first."""
    order = list(Doubt)
    found = [*night.same_as_sent_back, *night.unreviewed]
    found.sort(
        key=lambda look: (
            order.index(DOUBT_OF.get(look.grade, Doubt.CLAIMED)),
            not look.coverage.has_gap,
        )
    )
    return found


def _headline(one: ProjectLook, at: float) -> Headline:
    """How a project stands, in one word."""
    facts = nothing_known(one.project)
    if one.night is not None:
        facts = replace(facts, night=one.night)
    return Screen(replace(facts, trouble=one.trouble), at).state


def _turn(row: StoryRow) -> int:
    """What a person looks for first."""
    return _FIRST.find(row.mark) if row.mark in _FIRST else len(_FIRST)
