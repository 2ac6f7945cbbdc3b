"""One look as pieces of HTML, each rendered once for everybody who looks.

A piece changes only when what it says changes: points in time stand in it as such, and the browser
counts from there.  Words of agents and files are one bounded line each, without secrets, and become
text by autoescape; that a form belongs to a device is filled in last (`Piece.of`).
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import FileSystemLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ralphloop.core.totals import cost_words, money
from ralphloop.night.values import State, StoryLook, ended_words, next_steps
from ralphloop.redaction import redact
from ralphloop.text.durations import clock, format_duration, told_iso
from ralphloop.text.plain import clean, counted, number
from ralphloop.ui.monitor import paint
from ralphloop.ui.monitor.moments import Facts, StoryRow
from ralphloop.ui.monitor.pages import Page as Lines
from ralphloop.ui.monitor.panels import Screen
from ralphloop.ui.report.values import Teller

# on a wide screen
LEFT = ("now", "log", "facts")
RIGHT = ("stories", "past")
NAMES = ("head", "yours", "steer", *LEFT, *RIGHT)
ROWS = 50  # of a list, at a time
_LOG_LINES = 30
_MOST_ASKED = 40
_MOST_LINES = 600
_LONGEST_QUESTION = 4_000
_FIRST = f"{paint.RUNNING}{paint.BLOCKED}{paint.REVIEW}{paint.ASIDE}{paint.OPEN}{paint.WAITING}"


class Piece(NamedTuple):
    """A part of the page, and a short word that is another one when it changes."""

    html: str
    digest: str
    blank: str  # stands where a form's word goes

    def of(self, word: str) -> str:
        """For one device."""
        return self.html.replace(self.blank, word)


class Painter:
    """The templates, and everything they may know."""

    def __init__(self, values: Sequence[str] = (), *, read_only: bool = False) -> None:
        environment = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._secrets, self._blank = tuple(values), secrets.token_hex(16)
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
            "counted": counted,
            "commands": lambda text: [(part, n % 2) for n, part in enumerate(text.split("`"))],
        }
        environment.globals |= {"blank": self._blank, "read_only": read_only}
        environment.globals |= {"left": LEFT, "right": RIGHT}
        self._page: Template = environment.get_template("page.html.j2")
        self._parts: Any = environment.get_template("parts.html.j2").module

    def pieces(self, facts: Facts, at: float) -> dict[str, Piece]:
        told = self._told(facts, at)
        found = {}
        for name in NAMES:
            html = str(getattr(self._parts, name)(told)).strip()
            digest = hashlib.sha256(html.encode("utf-8", "replace")).hexdigest()[:12]
            found[name] = Piece(html, digest, self._blank)
        return found

    def page(self, word: str, project: str, **more: Any) -> str:
        """A whole page; `more` says what of."""
        known = {"pieces": None, "said": "", "token": "", "title": "", "lists": ()}
        return self._page.render(project=self.say(project, 60), word=word, **(known | more))

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
            "review": [row for row in facts.stories if row.mark == paint.REVIEW][:_MOST_ASKED],
            "steps": [one for one in steps if one.kind not in ("answer", "review")],
            "lanes": {one.iteration: one for one in night.lanes},
            "log": facts.log[-_LOG_LINES:],
            "stories": sorted(facts.stories, key=_turn)[:ROWS],
        }

    def _question(self, look: StoryLook) -> dict[str, str]:
        asked = clean(redact(look.state.reason[: _LONGEST_QUESTION * 2], self._secrets))
        return {"id": look.story.id, "title": look.story.title, "asks": asked[:_LONGEST_QUESTION]}

    def lines(self, pages: Sequence[Lines]) -> Iterator[tuple[str, list[paint.Line]]]:
        """Pages of the monitor, the newest lines of each: words with their tone."""
        for page in pages:
            rows = page.lines[-_MOST_LINES:]
            # Secrets are looked for in all lines together: keys go over several.
            safe = redact("\n".join(map(paint.plain, rows)), self._secrets).split("\n")
            told = zip(safe, [*rows, *[()] * len(safe)], strict=False)
            yield (
                page.title,
                [r if paint.plain(r) == text else paint.line(text) for text, r in told],
            )


def _turn(row: StoryRow) -> int:
    """What a person looks for first."""
    return _FIRST.find(row.mark) if row.mark in _FIRST else len(_FIRST)
