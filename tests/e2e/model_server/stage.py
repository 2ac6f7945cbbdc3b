"""Which turn answers which request, and what has been asked and billed so far.

Scenes are played from their first turn to their last.  Of the scenes that are not through yet, the
one counts whose `when` stands in the newest of the user's messages that any scene knows; else the
first without `when`.  A request for which there is no turn left is answered politely, so that no
CLI starts to retry, and is kept in `unexpected`.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.e2e.model_server.script import ALWAYS, Scene, Turn, Usage
from tests.e2e.model_server.wire import Json, Question

_OFF_SCRIPT = Turn(text="The script has no more turns.", usage=Usage())
# Each CLI has its own way to list skills: bullets (claude, codex) or tags (opencode, gemini).
_SKILL_LISTS = {
    "skills are available": re.compile(r"^- ([\w:.-]+)(?=: )", re.MULTILINE),
    "### Available skills": re.compile(r"^- ([\w:.-]+)(?=: )", re.MULTILINE),
    "<available_skills>": re.compile(r"<name>([^<]+)</name>"),
}


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and how it was answered."""

    number: int
    path: str
    wire: str
    question: Question
    headers: Mapping[str, str]
    body: Json
    turn: Turn
    at: float = field(default_factory=time.time)
    billed: Usage = field(default_factory=Usage)  # the tokens that the client was told
    status: int = 0  # of the answer; 0: it got none
    finished: bool = False  # the whole answer was sent
    settled: bool = False  # nothing more will happen to it
    abandoned: bool = False  # the client went away before

    @property
    def prompt(self) -> str:
        """What the user said last."""
        return self.question.prompts[-1] if self.question.prompts else ""

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills that the CLI lists to the model."""
        for heading, skill in _SKILL_LISTS.items():
            _, found, rest = self.question.system.partition(heading)
            if found:
                return tuple(skill.findall(rest))
        return ()

    def mentions(self, text: str) -> bool:
        """Whether a text stands anywhere in the request, tool descriptions and results included."""
        return json.dumps(text)[1:-1] in json.dumps(self.body)


class _Playing:
    """A scene and how far it is."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._turn = 0
        self._played = 0

    def next(self) -> Turn | None:
        if self._turn == len(self.scene.turns):
            return None
        turn = self.scene.turns[self._turn]
        self._played += 1
        if turn.times != ALWAYS and self._played >= turn.times:
            self._turn, self._played = self._turn + 1, 0
        return turn

    @property
    def through(self) -> bool:
        return self._turn == len(self.scene.turns)

    @property
    def endless(self) -> bool:
        return not self.through and self.scene.turns[self._turn].times == ALWAYS


class Stage:
    """Plays scenes and keeps the record; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._playing: list[_Playing] = []
        self.exchanges: list[Exchange] = []
        self.unexpected: list[str] = []

    def play(self, *scenes: Scene) -> None:
        """Add scenes to what is played."""
        with self._lock:
            self._playing += [_Playing(scene) for scene in scenes]

    def admit(
        self, *, path: str, wire: str, question: Question, headers: Mapping[str, str], body: Json
    ) -> Exchange:
        """Record a request and choose its answer."""
        with self._lock:
            number = len(self.exchanges) + 1
            side = Turn(usage=Usage())
            turn = side if question.side else self.choose(question, headers, body)
            if turn is None:
                self.unexpected.append(f"request {number} ({path}) found no turn")
                turn = _OFF_SCRIPT
            exchange = Exchange(
                number=number,
                path=path,
                wire=wire,
                question=question,
                headers=headers,
                body=body,
                turn=turn,
            )
            self.exchanges.append(exchange)
            return exchange

    def complain(self, problem: str) -> None:
        """Keep something that should not have happened."""
        with self._lock:
            self.unexpected.append(problem)

    @property
    def unplayed(self) -> list[Scene]:
        """Scenes that nobody asked to the end; endless ones have none."""
        with self._lock:
            left = [it for it in self._playing if not (it.through or it.endless)]
            return [it.scene for it in left]

    def choose(self, question: Question, headers: Mapping[str, str], body: Json) -> Turn | None:
        """The next turn for a request, none if the script has none; the lock is held."""
        prompts = question.prompts
        waiting = [it for it in self._playing if not it.through]
        for prompt in reversed(prompts):
            for it in waiting:
                if it.scene.when and it.scene.when in prompt:
                    return it.next()
        return next((it.next() for it in waiting if not it.scene.when), None)
