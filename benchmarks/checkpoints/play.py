"""One checkpoint as a story: what the reference passes here, what an agent brings, what is said."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.checkpoints import hollow, tables
from benchmarks.checkpoints.hollow import NewFunction
from benchmarks.checkpoints.problems import Problem, core_of, without_tests

RALPH = Path(sys.executable).with_name("ralph")
AGENTS = ("reference", "previous", "emptied", "table", "half")
_LONGEST_S = 900.0
_TO_END_S = 30.0
_HALVES_TRIED = 6
_LONGEST_REASON = 300

_ROOT_CONFTEST = """\
# Where the program lies is known only here: a fresh clone has another place.
import shlex
import sys
from pathlib import Path

LEFT_OUT = {left_out!r}


def pytest_configure(config):
    program = Path(__file__).parent / {entry!r}
    config.option.entrypoint = shlex.join([sys.executable, str(program)])


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.nodeid not in LEFT_OUT]
"""

_PYTEST_INI = """\
[pytest]
addopts = --entrypoint=here --checkpoint={name} -p no:cacheprovider
markers =
    functionality: hidden
    error: hidden
    regression: hidden
"""

_NOT_YET = """

_NOT_YET = {names!r}


@pytest.fixture(autouse=True)
def _what_is_done(request):
    if request.node.name in _NOT_YET:
        pytest.skip("not part of this yet")
"""

# Writes down how each test ended; loaded with -p, beside whatever a problem brings itself.
_OUTCOMES = """\
import json, os

_ended = {}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        known = _ended.get(report.nodeid, "passed")
        _ended[report.nodeid] = report.outcome if known == "passed" else known


def pytest_sessionfinish():
    with open(os.environ["OUTCOMES"], "w") as file:
        json.dump(_ended, file)
"""

_AGENT = '''\
import shutil, sys
from pathlib import Path
sys.stdin.read()
prepared = Path({prepared!r})
for gone in {gone!r}:
    path = Path(gone)
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
shutil.copytree(prepared, ".", dirs_exist_ok=True)
print("""Implemented and tested.

---RALPH_STATUS---
STATUS: COMPLETE
TASKS_COMPLETED_THIS_LOOP: 1
FILES_MODIFIED: 3
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: true
RECOMMENDATION: done
---END_RALPH_STATUS---""")
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One checkpoint as a story of one agent."""

    problem: str
    checkpoint: int
    agent: str
    grade: str = ""  # of the story; empty where it did not pass
    passed: int = 0  # of the tests that the reference passes here, hidden ones included
    failed: int = 0
    why: str = ""
    note: str = ""  # why it says nothing: the reference fails here, nothing to play
    seconds: float = 0.0
    code: str = ""  # which source of ours judged it; empty: one before that was written down

    @property
    def is_right(self) -> bool:
        return self.failed == 0 and self.passed > 0


class CannotPlayError(Exception):
    """A checkpoint or an agent that says nothing here, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the reference solution of a checkpoint passes on this machine."""

    truth: frozenset[str]  # its own tests, hidden ones included
    left_out: frozenset[str]  # core tests, also of earlier checkpoints, that it fails


class Hollowed(NamedTuple):
    """A new function, and its file with that function empty."""

    function: NewFunction
    text: str


class _Pytest(NamedTuple):
    outcomes: Mapping[str, str]
    said: str

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")

    @property
    def not_passed(self) -> frozenset[str]:
        return frozenset(self.outcomes) - self.passed


class Stage:
    """One checkpoint of one problem, laid out below a directory of its own."""

    def __init__(self, problem: Problem, number: int, python: Path, scratch: Path) -> None:
        self._problem = problem
        self._number = number
        self._python = python
        self._scratch = scratch
        self._test = f"tests/{problem.tests(number).name}"
        (scratch / "plugins").mkdir()
        (scratch / "plugins" / "outcomes_of_tests.py").write_text(_OUTCOMES)
        (scratch / "home").mkdir()

    # --- what is true here ----------------------------------------------------------------------

    def reference(self) -> Reference:
        """Ask the reference solution; raise CannotPlayError where it shows nothing."""
        if not self._problem.tests(self._number).exists():
            raise CannotPlayError("its tests are missing in this clone")
        with self._place() as place:
            self._lay_out_truth(place)
            self._problem.copy_solution(self._number, place)
            truth = self._pytest(place, self._test)
        with self._place() as place:
            self._lay_out_core(place, range(1, self._number + 1), frozenset())
            self._problem.copy_solution(self._number, place)
            core = self._pytest(place, "tests")
        own = [name for name in core.passed if name.startswith(self._test)]
        if not truth.passed or not own:
            last = (truth.said or core.said).strip().splitlines()[-1:]
            raise CannotPlayError(f"the reference passes no test here: {''.join(last)[:160]}")
        return Reference(truth=truth.passed, left_out=core.not_passed)

    def play(self, agent: str, reference: Reference) -> Replay:
        """Run ralph with one agent, and ask the tests of the checkpoint."""
        began = time.monotonic()
        with self._place() as root, self._place() as prepared:
            self._lay_out_project(root, prepared, reference)
            try:
                self._prepare(agent, root, prepared, reference)
            except CannotPlayError as error:
                return self._replay(agent, note=str(error))
            for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "S"]):
                self._run(["git", *arguments], root)
            ended = self._run([str(RALPH), "run", "--max-iterations", "2"], root)
            if ended.returncode == _NOT_READY:
                return self._replay(agent, note="the checkpoint before fails tests that are left")
            told = self._run([str(RALPH), "stories", "--json"], root)
            graded = _graded(told.stdout)
            failed = self._fails_of(root, reference.truth)
            return self._replay(
                agent,
                grade=graded.grade,
                why=graded.why or ended.stdout.strip()[-_LONGEST_REASON:],
                note="ralph was not done after 15 minutes" if ended.returncode == _ENDED else "",
                passed=len(reference.truth) - len(failed),
                failed=len(failed),
                seconds=round(time.monotonic() - began, 1),
            )

    def _replay(self, agent: str, **told: Any) -> Replay:
        return Replay(problem=self._problem.name, checkpoint=self._number, agent=agent, **told)

    def _fails_of(self, root: Path, truth: frozenset[str]) -> frozenset[str]:
        """The tests of the checkpoint that the reference passes and a tree does not."""
        with self._place() as place:
            ignored = shutil.ignore_patterns(".git", ".ralph*", "tests", "conftest.py")
            shutil.copytree(root, place, ignore=ignored, dirs_exist_ok=True)
            self._lay_out_truth(place)
            return truth - self._pytest(place, self._test).passed

    # --- laying out -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _place(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(
            prefix="place-", dir=self._scratch, ignore_cleanup_errors=True
        ) as place:
            yield Path(place)

    def _lay_out_truth(self, place: Path) -> None:
        self._problem.copy_helpers(place / "tests")
        shutil.copy(self._problem.tests(self._number), place / "tests")
        self._lay_out_settings(place, frozenset())

    def _lay_out_core(self, place: Path, numbers: Sequence[int], left_out: frozenset[str]) -> None:
        self._problem.copy_helpers(place / "tests")
        for number in numbers:
            path = self._problem.tests(number)
            (place / "tests" / path.name).write_text(core_of(path))
        self._lay_out_settings(place, left_out)

    def _lay_out_settings(self, place: Path, left_out: frozenset[str]) -> None:
        entry = self._problem.entry
        (place / "conftest.py").write_text(
            _ROOT_CONFTEST.format(entry=entry, left_out=sorted(left_out))
        )
        (place / "pytest.ini").write_text(_PYTEST_INI.format(name=f"checkpoint_{self._number}"))

    def _lay_out_project(self, root: Path, prepared: Path, reference: Reference) -> None:
        """The project as the checkpoint before left it, with its core tests and one open story."""
        before = self._number - 1
        self._lay_out_core(root, range(1, self._number), reference.left_out)
        if before:
            self._problem.copy_solution(before, root)
        (root / ".gitignore").write_text("__pycache__/\n.ralph/\n.ralph-*.json\n")
        (root / "SPEC.md").write_text(self._problem.specification(self._number).read_text())
        agent = self._scratch / "agent.py"
        gone = self._problem.solution_names(before)
        agent.write_text(_AGENT.format(prepared=str(prepared), gone=gone))
        command = json.dumps([str(self._python), str(agent)])
        check = json.dumps([[str(self._python), "-m", "pytest", "-q", "tests"]])
        (root / "ralph.toml").write_text(
            f'[agent]\nname = "command"\ncommand = {command}\n\n[checks]\ncommands = {check}\n'
        )
        story = {
            "id": "US-001",
            "title": f"Checkpoint {self._number} of {self._problem.name}",
            "acceptanceCriteria": [f"{self._problem.entry} does what SPEC.md asks for"],
            "passes": False,
        }
        (root / "prd.json").write_text(json.dumps({"userStories": [story]}, indent=1) + "\n")

    # --- what the agent brings ------------------------------------------------------------------

    def _prepare(self, agent: str, root: Path, prepared: Path, reference: Reference) -> None:
        """Lay down what the agent copies; raise CannotPlayError where it has nothing to play."""
        (prepared / "tests").mkdir()
        core = core_of(self._problem.tests(self._number))
        if agent == "reference":
            self._problem.copy_solution(self._number, prepared)
            (prepared / self._test).write_text(core)
        elif agent == "table":
            self._prepare_table(root, prepared, reference)
        elif agent == "half":
            self._prepare_half(root, prepared, reference)
        else:
            self._prepare_old_program(prepared)
            if agent == "emptied":
                for number in range(max(1, self._number - 1), self._number + 1):
                    empty = prepared / "tests" / self._problem.tests(number).name
                    empty.write_text(f'"""Tests of checkpoint {number}."""\n')

    def _prepare_old_program(self, prepared: Path) -> None:
        if self._number > 1:
            self._problem.copy_solution(self._number - 1, prepared)
        program = prepared / self._problem.entry
        before = program.read_text() if program.exists() else "import sys\n"
        program.write_text(f"{before}\n# Checkpoint {self._number} is complete.\n")

    def _prepare_table(self, root: Path, prepared: Path, reference: Reference) -> None:
        answers = self._answers(reference)
        if not answers:
            raise CannotPlayError("no table: the core tests do not ask a program that ends")
        entry = self._problem.entry
        (prepared / entry).write_text(tables.TABLE.format(answers=answers, entry=entry))
        (prepared / "answers_key.py").write_text(tables.KEY)
        if self._number > 1:
            self._problem.copy_solution(self._number - 1, prepared / "before")
        tried = self._tried(root, prepared, reference)
        if not tried.passed:
            raise CannotPlayError("no table of answers passes a core test")
        self._bring_tests(prepared, tried.not_passed)

    def _answers(self, reference: Reference) -> dict[str, list[Any]]:
        """What the core tests ask, and what the reference answers."""
        with self._place() as place:
            self._lay_out_core(place, [self._number], reference.left_out)
            self._problem.copy_solution(self._number, place)
            (place / "answers_key.py").write_text(tables.KEY)
            log = place / "answers.jsonl"
            program = place / self._problem.entry
            real = program.rename(place / f"reference_{self._problem.entry}")
            program.write_text(
                tables.RECORDER.format(here=str(place), program=str(real), log=str(log))
            )
            self._pytest(place, self._test)
            lines = log.read_text().splitlines() if log.exists() else []
        rows = [json.loads(line) for line in lines]
        return {str(row[0]): row[1:] for row in rows}

    def _prepare_half(self, root: Path, prepared: Path, reference: Reference) -> None:
        """The reference with that function empty that costs nearest to half of the core tests."""
        found = self._hollowed()
        step = max(1, len(found) // _HALVES_TRIED)
        best: tuple[float, Hollowed, frozenset[str]] | None = None
        for one in found[::step][:_HALVES_TRIED]:
            self._hollow_out(prepared, one)
            tried = self._tried(root, prepared, reference)
            if not tried.passed or not tried.not_passed:
                continue
            distance = abs(0.5 - len(tried.passed) / len(tried.outcomes))
            if best is None or distance < best[0]:
                best = (distance, one, tried.not_passed)
        if best is None:
            raise CannotPlayError("no function that some core tests need and others do not")
        self._hollow_out(prepared, best[1])
        self._bring_tests(prepared, best[2])

    def _hollowed(self) -> list[Hollowed]:
        """The new functions, read by the Python that runs the problem."""
        solutions = [str(self._problem.solution(self._number))]
        if self._number > 1:
            solutions.append(str(self._problem.solution(self._number - 1)))
        told = self._run([str(self._python), hollow.__file__, *solutions], self._scratch)
        if told.returncode:
            last = told.stdout.strip().splitlines()[-1:]
            raise CannotPlayError(f"its Python cannot read it: {''.join(last)[:160]}")
        return [Hollowed(NewFunction(**it), text) for it, text in json.loads(told.stdout)]

    def _hollow_out(self, prepared: Path, one: Hollowed) -> None:
        self._problem.copy_solution(self._number, prepared)
        (prepared / one.function.file).write_text(one.text)

    def _tried(self, root: Path, prepared: Path, reference: Reference) -> _Pytest:
        """How the core tests of the checkpoint end with what the agent is going to bring."""
        with self._place() as place:
            self._lay_out_core(place, [self._number], reference.left_out)
            shutil.copytree(prepared, place, dirs_exist_ok=True)
            path = self._problem.tests(self._number)
            (place / "tests" / path.name).write_text(core_of(path))
            return self._pytest(place, self._test)

    def _bring_tests(self, prepared: Path, failing: Collection[str]) -> None:
        """The core tests without those that fail: functions as a whole, or rows of them."""
        core = core_of(self._problem.tests(self._number))
        rows = {name.rpartition("::")[2] for name in failing}
        plain = {name for name in rows if "[" not in name}
        text = without_tests(core, plain)
        if cases := sorted(rows - plain):
            text += _NOT_YET.format(names=cases)
        (prepared / self._test).write_text(text)

    # --- running --------------------------------------------------------------------------------

    def _pytest(self, place: Path, chosen: str) -> _Pytest:
        with tempfile.NamedTemporaryFile(dir=self._scratch, suffix=".json") as file:
            told = self._run(
                [str(self._python), "-m", "pytest", "-q", "-p", "outcomes_of_tests", chosen],
                place,
                {"OUTCOMES": file.name, "PYTHONPATH": str(self._scratch / "plugins")},
            )
            written = Path(file.name).read_text()
        return _Pytest(json.loads(written) if written else {}, told.stdout)

    def _run(
        self, command: Sequence[str], place: Path, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._scratch / "home"),
            "TMPDIR": tempfile.gettempdir(),
            "RALPH_TRUST": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"GIT_{who}_NAME": "Replay" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "replay@example.com" for who in ("AUTHOR", "COMMITTER")},
            **(more or {}),
        }
        return run_bounded(command, place, env)


_ENDED = 124
_NOT_READY = 66  # what ralph ends with where the checks are red before anything is done


def run_bounded(
    command: Sequence[str], place: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command with everything it starts; one that takes too long ends as 124."""
    # A file and no pipe: a server that a test left behind would keep a pipe open for ever.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            process.terminate()  # ralph ends what it started
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_TO_END_S)
            code = _ENDED
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return subprocess.CompletedProcess(command, code, stdout=said.read(), stderr="")


class _Graded(NamedTuple):
    grade: str
    why: str


def _graded(stories: str) -> _Graded:
    """What `ralph stories --json` says of the one story."""
    _, brace, rest = stories.partition("{")
    try:
        told = json.loads(brace + rest)
    except ValueError:
        return _Graded("", "no answer")
    [story] = told["stories"]
    return _Graded(str(story.get("grade") or ""), str(story.get("why") or "")[:_LONGEST_REASON])
