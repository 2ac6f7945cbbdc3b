"""`ralph plan --seal`: tests by somebody who will not do the work, shown, and sealed after a yes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import RunRalph
from tests.plan.projects import Json, Terminal, git, listed, repository, stories, story

EXPORT = story("A", "Export notes as CSV")
TEXT = "def test_export_has_a_header():\n    import notes\n\n    assert notes.export([]) == 'id'\n"
PATH = "tests/test_accept_us_001.py"
GOOD: Json = {"files": [{"path": PATH, "stories": ["US-001"], "text": TEXT}]}
AUTHOR = """
import json, os, pathlib, sys
prompt = sys.stdin.read()
place = pathlib.Path(sys.argv[1])
number = len(list(place.glob("prompt-*")))
(place / f"prompt-{number}").write_text(prompt)
answers = json.loads((place / "answers.json").read_text())
answer = answers[min(number, len(answers) - 1)]
if isinstance(answer, dict) and "writes" in answer:
    pathlib.Path(answer["writes"]).write_text("x = 1\\n")
said = answer if isinstance(answer, str) else json.dumps(answer)
usage = {"input_tokens": 500, "output_tokens": 50}
known = {"session_id": "s", "uuid": "u"}
print(json.dumps({"type": "system", "subtype": "init", **known}))
message = {"id": "m", "model": "m", "content": [{"type": "text", "text": said}], "usage": usage}
print(json.dumps({"type": "assistant", "message": message, **known}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": said,
    "num_turns": 1, "total_cost_usd": 0.25, "usage": usage, **known}))
"""
TOML = """\
name = "other"
program = {python}
reader = "claude"
start = ["-S", {script}, {place}]
[safety]
moderate = []
asking = ["--may-only-read"]
"""


class Author:
    """A project whose tests another agent writes."""

    def __init__(self, place: Path, *answers: object) -> None:
        self.room = place / "author"
        self.room.mkdir(parents=True)
        (self.room / "answers.json").write_text(json.dumps(answers))
        script = self.room / "author.py"
        script.write_text(AUTHOR)
        self.root = repository(place / "repo", [stories(EXPORT)])
        told = {"python": sys.executable, "script": str(script), "place": str(self.room)}
        quoted = {name: json.dumps(words) for name, words in told.items()}
        (self.root / "agents.d").mkdir()
        (self.root / "agents.d" / "other.toml").write_text(TOML.format(**quoted))
        settings = self.root / "ralph.toml"
        checks = f"\n[checks]\ncommands = [{json.dumps([sys.executable, '-m', 'pytest', '-q'])}]\n"
        settings.write_text(settings.read_text() + checks)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "other")

    @property
    def prompts(self) -> list[str]:
        """What the other agent was told, start by start."""
        return [it.read_text() for it in sorted(self.room.glob("prompt-*"))]

    def holds(self, words: str) -> list[str]:
        """The files of the project that have these words in them."""
        files = (it for it in self.root.rglob("*") if it.is_file())
        return [str(it.relative_to(self.root)) for it in files if words.encode() in it.read_bytes()]


def sealed(run_ralph: RunRalph, root: Path) -> list[Json]:
    """What `ralph seal --list` says."""
    found: list[Json] = json.loads(run_ralph("seal", "--list", "--json", cwd=root).stdout)
    return found


def plan(run_ralph: RunRalph, root: Path, *arguments: str, code: int = 0) -> str:
    """What `ralph plan` says on both streams."""
    done = run_ralph("plan", *arguments, cwd=root)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["other", "@other"])
def test_another_agent_writes_tests_and_yes_seals_them(
    tmp_path: Path, run_ralph: RunRalph, name: str
) -> None:
    """They are sealed for their story; neither the project nor the log has a word of them."""
    author = Author(tmp_path, GOOD)
    said = plan(run_ralph, author.root, "Export notes", "--seal", name, "--yes")
    (file,) = sealed(run_ralph, author.root)
    assert (file["path"], file["stories"]) == (PATH, ["US-001"])
    assert file["by"].endswith("written by other")
    assert [entry["id"] for entry in listed(author.root)] == ["US-001"]
    assert "asked other 1 time: $0.25" in said
    assert "test_export_has_a_header" not in said  # a log may lie in the project
    assert author.holds("test_export_has_a_header") == []
    (prompt,) = author.prompts
    assert "US-001: Export notes as CSV" in prompt
    assert "`a` prints A" in prompt


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ('name = "other"', "other", "other is who works on the stories"),
        ('name = "other"\nmodel = "big"', "other:big", "other:big is who works on the stories"),
        ('name = "other"\nmodel = "big"', "other", "other may well be who works on the stories"),
        ('name = "other"', "other:big", "other:big may well be who works on the stories"),
        ('name = "scripted"\nfallback = ["other"]', "other", "other is who works on the stories"),
        ('name = "scripted"', "@", "--seal names no agent"),
    ],
)
def test_who_works_on_the_stories_does_not_write_their_tests(
    tmp_path: Path, run_ralph: RunRalph, settings: str, name: str, words: str
) -> None:
    """The same agent with the same model, or one that may be it, is refused before anybody is asked."""
    author = Author(tmp_path, GOOD)
    file = author.root / "ralph.toml"
    file.write_text(file.read_text().replace('name = "scripted"', settings))
    # Whoever plans is somebody else, and does not matter.
    agent = ("--agent", "scripted")
    said = plan(run_ralph, author.root, "Export", "--seal", name, "--yes", *agent, code=64)
    assert words in said
    assert author.prompts == []
    assert not (author.root / "prd.json").exists()


def test_another_model_of_the_same_agent_is_somebody_else(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Where both models are named and differ."""
    author = Author(tmp_path, GOOD)
    (author.root / "prd.json").write_text(json.dumps({"userStories": [
        {"id": "US-001", "title": "Export", "acceptanceCriteria": ["`a` prints A"], "passes": False}
    ]}))  # fmt: skip
    file = author.root / "ralph.toml"
    file.write_text(file.read_text().replace('"scripted"', '"other"\nmodel = "big"'))
    plan(run_ralph, author.root, "--seal", "other:small", "--yes")
    (listing,) = sealed(run_ralph, author.root)
    assert listing["by"].endswith("written by other:small")


def test_a_person_sees_the_tests_and_a_no_keeps_nothing(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The whole text is shown; after a no it is nowhere, and the stories are written all the same."""
    author = Author(tmp_path, GOOD)
    screen = Terminal(author.root, "Export notes", "--seal", "other", env={"RALPH_TRUST": "1"})
    screen.wait_for("[a]ccept").type("a\n")
    screen.wait_for("assert notes.export([]) == 'id'").wait_for("Seal 1 file?").type("n\n")
    assert screen.end() == 0
    assert "Nothing was sealed, and the tests were not kept." in screen.shown
    assert sealed(run_ralph, author.root) == []
    assert author.holds("test_export_has_a_header") == []
    assert len(listed(author.root)) == 1


def test_without_a_yes_nobody_is_asked_and_nothing_is_sealed(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """In a script, with --json and with --dry-run."""
    author = Author(tmp_path, GOOD)
    assert "nobody can be asked here" in plan(
        run_ralph, author.root, "Export", "--seal", "other", code=64
    )
    said = plan(run_ralph, author.root, "Export", "--seal", "other", "--json", code=64)
    assert "nothing is sealed without a yes" in said
    plan(run_ralph, author.root, "Export", "--seal", "other", "--dry-run")
    assert author.prompts == []
    assert sealed(run_ralph, author.root) == []


BAD = {
    "taken": ("script.json", TEXT, "has no name of a file of tests"),
    "away": ("../test_x.py", TEXT, "must be a plain path below the project's root"),
    "git": (".git/test_x.py", TEXT, "nothing is kept in .git"),
    "broken": (PATH, "def test_x(:\n", "does not parse"),
    "odd": (PATH, "def test_x():\n    assert '\u202e'\n", "control or invisible characters"),
    "there": ("test_there.py", TEXT, "is there already"),
}


@pytest.mark.parametrize("kind", BAD)
def test_an_answer_that_cannot_be_used_goes_back(
    tmp_path: Path, run_ralph: RunRalph, kind: str
) -> None:
    """With the mistake in words; a good one after it is sealed."""
    path, text, words = BAD[kind]
    bad = {"files": [{"path": path, "stories": ["US-001"], "text": text}]}
    author = Author(tmp_path, bad, "no JSON", {"files": []}, GOOD)
    (author.root / "test_there.py").write_text("def test_there():\n    assert 1 + 1 == 2\n")
    said = plan(run_ralph, author.root, "Export notes", "--seal", "other", "--yes")
    assert words in said
    assert "there is no JSON object in it" in said
    assert "US-001 has neither a test nor a reason" in said
    assert [file["path"] for file in sealed(run_ralph, author.root)] == [PATH]
    assert "asked other 4 times" in said


def test_one_that_never_gets_it_right_leaves_the_stories(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Four starts at most; what was planned is written, and it is said that nothing is sealed."""
    author = Author(tmp_path, "no JSON")
    said = plan(run_ralph, author.root, "Export notes", "--seal", "other", "--yes", code=65)
    assert "no usable tests after 3 repairs" in said
    assert "Nothing was sealed" in said
    assert "1 story written to prd.json" in said
    assert len(author.prompts) == 4
    assert sealed(run_ralph, author.root) == []


def test_an_author_that_writes_into_the_work_tree_is_not_believed(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Who would lay tests where the agent looks seals nothing."""
    author = Author(tmp_path, {"writes": "sneaky.py"})
    said = plan(run_ralph, author.root, "Export notes", "--seal", "other", "--yes", code=66)
    assert "the work tree changed while other read it: sneaky.py" in said
    assert sealed(run_ralph, author.root) == []


def test_planning_and_sealing_share_what_they_may_cost(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What planning used is gone, and the way on is said."""
    author = Author(tmp_path, GOOD)
    cost = ("--max-cost", "0.25")
    said = plan(run_ralph, author.root, "Export", "--seal", "other", "--yes", *cost, code=69)
    assert "planning has used up what it may take" in said
    assert author.prompts == []
    assert len(listed(author.root)) == 1


def test_json_names_the_tests_and_not_their_text(tmp_path: Path, run_ralph: RunRalph) -> None:
    """And the stories for which there is none, with the reason."""
    none = {"files": [], "none": [{"story": "US-001", "why": "it names no function"}]}
    author = Author(tmp_path / "one", GOOD)
    done = run_ralph("plan", "Export", "--seal", "other", "--yes", "--json", cwd=author.root)
    found = json.loads(done.stdout)["acceptance"]
    assert found["files"] == [{"path": PATH, "stories": ["US-001"]}]
    assert found["sealed"] is True
    author = Author(tmp_path / "two", none)
    done = run_ralph("plan", "Export", "--seal", "other", "--yes", "--json", cwd=author.root)
    found = json.loads(done.stdout)["acceptance"]
    assert found["none"] == [{"story": "US-001", "why": "it names no function"}]
    assert found["sealed"] is False


def test_open_stories_without_sealed_tests_get_them(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Without any words, for the list that is there; a second time there is nothing to do."""
    author = Author(tmp_path, GOOD)
    plan(run_ralph, author.root, "Export notes", "--yes")
    said = plan(run_ralph, author.root, "--seal", "other", "--dry-run")
    assert "other would be asked for tests of US-001." in said
    assert author.prompts == []
    plan(run_ralph, author.root, "--seal", "other", "--yes")
    assert [file["path"] for file in sealed(run_ralph, author.root)] == [PATH]
    said = plan(run_ralph, author.root, "--seal", "other", "--yes")
    assert "No open story is without sealed tests." in said
    assert len(author.prompts) == 1
