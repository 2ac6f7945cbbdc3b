"""The agent of a night: a scripted model that does what a prompt asks, and misbehaves by plan.

It is no supervisor's friend.  Which story it works on, where it marks it, whether it commits and
which words it ends with follow from the prompt it is given: a prompt that names a story gets that
story; one that names a list gets the first open entry of that list.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.nights.shop import CHECK, TASKS, Task
from tests.e2e.model_server import ToolUse, Turn, Usage, shell
from tests.e2e.model_server.stage import Stage
from tests.e2e.model_server.wire import Json, Question

START_HEADER = "x-night-start"
START_LOG = "starts.log"

_BILL = Usage(input=2_000, output=400, cache_read=15_000, cache_write=1_000)
_STORY = re.compile(r"^# Your story: (US-\d+)", re.MULTILINE)
_BLOCK = """
---RALPH_STATUS---
STATUS: {status}
TASKS_COMPLETED_THIS_LOOP: {done}
FILES_MODIFIED: 2
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: {over}
RECOMMENDATION: {words}
---END_RALPH_STATUS---
"""
# What prompts ask for once everything is done, each in its own words.
_LAST_WORDS = (
    "<promise>COMPLETE</promise>",
    "CONTINUOUS_CLAUDE_PROJECT_COMPLETE",
    "ALL STORIES ARE DONE",
    "<<<RALPHEX:ALL_TASKS_DONE>>>",
)
_GIVEN_UP = "<<<RALPHEX:TASK_FAILED>>>"  # where a prompt asks for it when the tests stay red
_PLAN_FILE = re.compile(r"plan file at (\S+\.md)")
_ASKED_TO_COMMIT = re.compile(r"^(?!.*do not commit).*\bcommit (?:all|working)\b", re.I | re.M)

_ASKED_TO_JUDGE = "has the following stopping condition been satisfied?"

Crash = Literal["", "before", "written", "told"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What the agent does in one start for one story."""

    files: Mapping[str, str] = field(default_factory=dict)
    words: str = "Implemented and tested."
    claims: bool = True  # says that it is done, and marks it where it was told to
    blocked: bool = False
    honest: bool = False
    marks_all: bool = False  # calls every story done
    crash: Crash = ""  # its process is killed at this point
    loops: int = 0  # so many dear requests before anything else
    hangs: bool = False  # the model never answers


def honest(task: Task) -> Act:
    """The work as it should be."""
    return Act(files={task.module: task.code, task.test_file: task.test}, honest=True)


Behaviour = Callable[[Task, int], Act | None]
Trouble = Callable[[int], Turn | None]


class RoundKey(NamedTuple):
    """A start of the agent, and how often a user spoke in its conversation."""

    start: int
    prompts: int


class Place(NamedTuple):
    """Where in a conversation a request stands: prompts so far, and answers since the last one."""

    prompts: int
    step: int


@dataclass(slots=True)
class Round:
    """What the agent does for one prompt, and what that cost."""

    story: str = ""
    honest: bool = False
    turns: tuple[Turn, ...] = ()
    billed: Usage = field(default_factory=Usage)


class Actor(Stage):
    """Answers every request of a night."""

    def __init__(self, root: Path, behaviour: Behaviour, trouble: Trouble) -> None:
        super().__init__()
        self._root = root
        self._behaviour = behaviour
        self._trouble = trouble
        self._asked = 0
        self._attempts = dict[str, int]()
        self.rounds = dict[RoundKey, Round]()
        self.misbehaved_at = 0.0  # when the first thing happened that a person should know
        self.reached = threading.Event()  # the story at which the night kills the supervisor
        self.kill_at = ""

    def choose(self, question: Question, headers: Mapping[str, str], body: Json) -> Turn:
        """The answer to one request; the stage holds its lock."""
        self._asked += 1
        if (trouble := self._trouble(self._asked)) is not None:
            self._note_trouble()
            return trouble
        prompt = question.prompts[-1] if question.prompts else ""
        if _ASKED_TO_JUDGE in prompt:
            return self._evaluated(question)
        place = _place_in(body)
        key = RoundKey(start=int(headers.get(START_HEADER, "0")), prompts=place.prompts)
        found = self.rounds.get(key)
        if found is None:
            # What a later prompt of the same conversation does not say again still holds.
            found = self._begin(
                key.start, "\n".join(dict.fromkeys((*question.prompts[:1], prompt)))
            )
            self.rounds[key] = found
        turn = found.turns[min(place.step, len(found.turns) - 1)]
        if place.step == len(found.turns) - 1 and found.story == self.kill_at:
            self.reached.set()
        return turn

    def _evaluated(self, question: Question) -> Turn:
        """The verdict of a model that sees the transcript alone: it believes what stands there."""
        left = _Plan.of(self._root, "\n".join(question.prompts)).open()
        reason = "every story was reported as done" if not left else f"{left[0]} is still open"
        return Turn(text=json.dumps({"ok": not left, "reason": reason}), usage=_BILL)

    def bill(self) -> Usage:
        """Add up what each round was told that it costs; what all requests together cost."""
        whole = Usage()
        for found in self.rounds.values():
            found.billed = Usage()
        for exchange in self.exchanges:
            whole += exchange.billed
            start = int(exchange.headers.get(START_HEADER, "0"))
            key = RoundKey(start=start, prompts=_place_in(exchange.body).prompts)
            if key in self.rounds:
                self.rounds[key].billed += exchange.billed
        return whole

    # --- one start ------------------------------------------------------------------------------

    def _begin(self, number: int, prompt: str) -> Round:
        if "Write a commit message" in prompt:
            commit = shell("git add -A && git commit -qm 'Work of this iteration'")
            return Round(turns=(Turn(tools=(commit,)), Turn(text="Committed.")))
        plan = _Plan.of(self._root, prompt)
        named = _STORY.search(prompt)
        open_ids = [named[1]] if named else plan.open()
        if not open_ids:
            return Round(turns=(Turn(text=_ending(prompt, True, "Nothing is left."), usage=_BILL),))
        task = next(it for it in TASKS if it.id == open_ids[0])
        attempt = self._attempts.get(task.id, 0) + 1
        self._attempts[task.id] = attempt
        planned = self._behaviour(task, attempt)
        act = planned or honest(task)
        if planned is not None:
            self._note_trouble()
        marked = [it.id for it in TASKS] if act.marks_all else [task.id]
        over = act.claims and not named and set(open_ids) <= set(marked)
        turns = self._turns(
            act, number, prompt, plan, marks=() if named else tuple(marked), over=over
        )
        return Round(story=task.id, honest=act.honest, turns=turns)

    def _turns(
        self, act: Act, number: int, prompt: str, plan: _Plan, *, marks: tuple[str, ...], over: bool
    ) -> tuple[Turn, ...]:
        killed = Turn(tools=(shell(f"kill -9 {self._process(number)}; sleep 60"),), usage=_BILL)
        looking = Turn(tools=(shell("ls"),), usage=Usage(input=150_000, output=2_000))
        turns = [looking] * act.loops
        if act.hangs:
            turns.append(Turn(delay_s=100_000.0))
        if act.crash == "before":
            turns.append(killed)
        if act.files:
            turns.append(Turn(tools=(_written(act.files),), usage=_BILL))
        if act.crash == "written":
            turns.append(killed)
        if act.claims:
            told = [plan.marking(story) for story in marks]
            if _ASKED_TO_COMMIT.search(prompt):
                told.append("git add -A && git commit -qm 'Implement a story'")
            if told:
                turns.append(Turn(tools=(shell("\n".join(told)),), usage=_BILL))
        if act.crash == "told":
            turns.append(killed)
        words = _ending(prompt, over, act.words, blocked=act.blocked, claims=act.claims)
        if act.files and not act.claims and _GIVEN_UP in prompt:
            words = f"{words}\n\n{_GIVEN_UP}"
        turns.append(Turn(text=words, usage=_BILL))
        return tuple(turns)

    def _process(self, number: int) -> str:
        """The process of a start, as its stand-in on PATH wrote it down."""
        log = self._root.parent / START_LOG
        for line in log.read_text().splitlines():
            start, _, process = line.partition(" ")
            if int(start) == number:
                return process.split()[0]
        raise LookupError(f"start {number} is not in {log}")

    def _note_trouble(self) -> None:
        self.misbehaved_at = self.misbehaved_at or time.time()


@dataclass(frozen=True, slots=True)
class _Plan:
    """The list of stories that a prompt speaks of."""

    path: Path

    @classmethod
    def of(cls, root: Path, prompt: str) -> _Plan:
        name = ".ralph/fix_plan.md" if "fix_plan.md" in prompt else "prd.json"
        if named := _PLAN_FILE.search(prompt):
            name = named[1]
        found = [root / name, root / "scripts/ralph" / name]
        return cls(next((path for path in found if path.exists()), found[0]))

    def open(self) -> list[str]:
        """The stories that are not marked as done, in their order."""
        text = self.path.read_text()
        if self.path.suffix == ".md":
            return re.findall(r"^- \[ \] (US-\d+)", text, re.MULTILINE)
        return [it["id"] for it in json.loads(text)["userStories"] if not it["passes"]]

    def marking(self, story: str) -> str:
        """The command by which an agent marks a story as done."""
        path = shlex.quote(str(self.path))
        if self.path.suffix == ".md":
            return f"sed -i 's/- \\[ \\] {story}/- [x] {story}/' {path}"
        program = (
            "import json,sys; p=sys.argv[1]; d=json.load(open(p)); "
            "[s.update(passes=True) for s in d['userStories'] if s['id']==sys.argv[2]]; "
            "json.dump(d,open(p,'w'),indent=2)"
        )
        return f"python3 -c {shlex.quote(program)} {path} {story}"


def _written(files: Mapping[str, str]) -> ToolUse:
    parts = [
        f"cat > {shlex.quote(name)} <<'END_OF_FILE'\n{text}END_OF_FILE"
        for name, text in files.items()
    ]
    return shell("\n".join([*parts, CHECK]))


def _ending(
    prompt: str, over: bool, words: str, *, blocked: bool = False, claims: bool = True
) -> str:
    """The last message, with what the prompt wants to find in it."""
    said = [words]
    if over:
        said += [last for last in _LAST_WORDS if last in prompt]
    if "RALPH_STATUS" in prompt:
        status = "BLOCKED" if blocked else "COMPLETE" if claims else "IN_PROGRESS"
        said.append(
            _BLOCK.format(
                status=status,
                done=int(claims),
                over=str(over).lower(),
                words=words[:200] if blocked else "go on with the next story",
            )
        )
    return "\n\n".join(said)


def _place_in(body: Json) -> Place:
    """Where a request stands in its conversation; notes of the CLI are nobody's words."""
    prompts = 0
    step = 0
    for message in body.get("messages", []):
        if message.get("role") == "assistant":
            step += 1
        elif message.get("role") == "user" and _is_spoken(message.get("content")):
            prompts += 1
            step = 0
    return Place(prompts=prompts, step=step)


def _is_spoken(content: object) -> bool:
    if isinstance(content, str):
        return not content.lstrip().startswith("<system-reminder>")
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    if any(part.get("type") == "tool_result" for part in parts):
        return False
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    return any(not text.lstrip().startswith("<system-reminder>") for text in texts)
