"""`ralph report` and the files a run leaves, on real repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.project import Project
from ralphloop.ui.report import write_report
from tests.conftest import RunRalph
from tests.loop.projects import Sandbox, sandbox, story
from tests.ui.report_nights import RUN, Night, eventful, open_journal

AGENT = """
if STORY == "US-2" and START == 2:
    done(words="Implemented.")
elif STORY == "US-3":
    status("BLOCKED", recommendation="Which <b>database</b>?")
else:
    write(f"src/{STORY}.txt", START)
    done()
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A project in which a real run has ended with a question."""
    stories = [story("US-1"), story("US-2", verify=["test", "-f", "src/US-2.txt"]), story("US-3")]
    made = sandbox(
        tmp_path_factory.mktemp("report"), AGENT, stories=stories, checks=[["test", "-d", "."]]
    )
    done = made.run()
    assert done.code == 2, done.text
    return made


def test_a_real_run_is_told_as_it_was(box: Sandbox) -> None:
    """What the loop writes is what the report reads: grades, question, a false done."""
    found = json.loads(box.ralph("report", "--json").out)
    stories = {g["key"]: [s["id"] for s in g["stories"]] for g in found["groups"] if g["count"]}
    assert stories == {"waiting": ["US-3"], "checked": ["US-1"], "verified": ["US-2"]}
    assert [miss["key"] for miss in found["near_misses"]] == ["false_done"]
    assert found["times"]["working_s"] > 0
    assert found["times"]["checking_s"] > 0


def test_the_commands_in_the_report_can_be_run(box: Sandbox) -> None:
    """The diff is the story's own commit, the proof is green."""
    found = json.loads(box.ralph("report", "--json").out)
    lines = {s["id"]: s for g in found["groups"] for s in g["stories"]}
    shown = box.git(*lines["US-2"]["look"].split()[1:], "--", "src")
    assert "src/US-2.txt" in shown
    assert "src/US-1.txt" not in shown
    assert lines["US-2"]["proof"] == ["test -d .", "test -f src/US-2.txt"]


def test_a_story_that_came_back_shows_its_own_work_alone(tmp_path: Path) -> None:
    """Set aside, passed over by another, then passed: its commit, and every attempt it took."""
    agent = """
if STORY == "US-1" and START <= 2:
    status(words="I think about it.", files=0)
else:
    write(f"src/{STORY}.txt", START)
    done()
"""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("US-1"), story("US-2")],
        checks=[["test", "-d", "."]],
        limits="max_attempts = 2",
    )
    assert box.run().code == 0
    found = json.loads(box.ralph("report", "--json").out)
    lines = {s["id"]: s for g in found["groups"] for s in g["stories"]}
    assert (lines["US-1"]["attempts"], lines["US-1"]["iterations"]) == (2, 3)
    listed = json.loads(box.ralph("stories", "--json").out)["stories"]
    assert {s["id"]: (s["attempts"], s["iterations"]) for s in listed} == {
        "US-1": (2, 3),
        "US-2": (0, 1),
    }
    assert "2✗ checked" in box.ralph("monitor", "--once").out
    shown = box.git(*lines["US-1"]["look"].split()[1:], "--", "src")
    assert "src/US-1.txt" in shown
    assert "src/US-2.txt" not in shown


def test_markdown_is_the_default_and_html_a_choice(box: Sandbox) -> None:
    """On the terminal words, on request a page; both name the question as text."""
    words, page = box.ralph("report"), box.ralph("report", "--html")
    assert "1. Answer US-3: Which \\<b\\>database\\</b\\>?" in words.out
    assert page.out.startswith("<!DOCTYPE html>")
    assert "Which &lt;b&gt;database&lt;/b&gt;?" in page.out


def test_a_run_is_found_by_the_end_of_its_name(box: Sandbox) -> None:
    """Six characters are enough; an unknown name lists the known ones."""
    run = json.loads(box.ralph("report", "--json").out)["run"]
    assert json.loads(box.ralph("report", run[-6:], "--json").out)["run"] == run
    unknown = box.ralph("report", "nonsense")
    assert unknown.code == 64
    assert run in unknown.err


def test_without_a_run_the_way_on_is_said(run_ralph: RunRalph, tmp_path: Path) -> None:
    """No journal is no mystery."""
    done = run_ralph("report", cwd=tmp_path)
    assert done.returncode == 64
    assert "nothing has run here yet" in done.stderr
    assert "ralph run" in done.stderr


def test_open_writes_the_page_and_shows_it(box: Sandbox, tmp_path: Path) -> None:
    """The browser is handed the file that was written."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    done = box.ralph("report", "--open", env={"BROWSER": f"{browser} %s"})
    assert done.code == 0, done.text
    assert seen.read_text().strip() == Path(done.out.strip()).as_uri()
    assert Path(done.out.strip()).read_text().startswith("<!DOCTYPE html>")


def test_write_report_leaves_both_files(tmp_path: Path) -> None:
    """HTML and Markdown, named after the run, in .ralph/reports."""
    with open_journal(tmp_path) as journal:
        eventful(journal)
        written = write_report(Project(tmp_path), RUN)
    places = [path.relative_to(tmp_path).as_posix() for path in written]
    assert places == [f".ralph/reports/{RUN}.html", f".ralph/reports/{RUN}.md"]
    assert all(path.stat().st_size > 1_000 for path in written)


def test_write_report_never_raises(tmp_path: Path) -> None:
    """An unknown run, a place that cannot be written: no page, no error; a strange record: a page."""
    project = Project(tmp_path)
    with open_journal(tmp_path) as journal:
        assert write_report(project, "unknown") == []
        night = Night(journal)
        (project.directory / "reports").write_text("a file stands in the way")
        assert write_report(project, RUN) == []
        (project.directory / "reports").unlink()
        night.iteration("US-1")
        journal.run("UPDATE iterations SET record = '[1]'")
        assert len(write_report(project, RUN)) == 2


def test_a_report_is_made_without_stories_and_git(tmp_path: Path) -> None:
    """The story file is gone and there never was a repository: the rest is told."""
    with open_journal(tmp_path) as journal:
        Night(journal).passes("US-1")
    page, _ = write_report(Project(tmp_path), RUN)
    assert "1 of 1 story passed" in page.read_text()


def test_a_link_cannot_lead_the_report_out_of_the_project(tmp_path: Path) -> None:
    """An agent that links the reports directory away gets no file written there."""
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    elsewhere.mkdir()
    root.mkdir()
    with open_journal(root) as journal:
        Night(journal)
        (root / ".ralph" / "reports").symlink_to(elsewhere)
        assert write_report(Project(root), RUN) == []
    assert list(elsewhere.iterdir()) == []


def test_what_was_learned_since_the_run_began_is_told(tmp_path: Path) -> None:
    """With its standing and the reason; older learnings are old news, held back words stay back."""
    names = {"old": "2026-11-01T00:00:00Z", "new": "2026-11-15T22:10:00Z"}
    patterns = [
        {"id": name, "text": f"{name} pattern", "touched": at, "standing": "established"}
        for name, at in names.items()
    ]
    patterns += [
        {**patterns[1], "id": "held", "text": "secret", "standing": "held back", "reason": "x"},
        {**patterns[1], "text": "words", "standing": "proposed"},
        {**patterns[1], "text": "wrong", "standing": "retired", "reason": "its file is gone"},
    ]
    with open_journal(tmp_path) as journal:
        night = Night(journal)
        night.iteration("US-1", minutes=30)
        night.end("interrupted")
        (learned := tmp_path / ".ralph" / "learnings").mkdir()
        (learned / "index.json").write_text(json.dumps({"patterns": patterns}))
        _, words = write_report(Project(tmp_path), RUN)
    assert words.read_text().partition("## Learned\n\n")[2].splitlines() == [
        "- 2 learnings wait for your yes or no: ralph learnings review",
        "- established: new pattern",
        "- held back: it speaks of x (ralph learnings why held)",
        "- proposed: words",
        "- retired: its file is gone: wrong",
    ]


SECRET = "sk-ant-api03-" + "a1B2" * 20
TELLING = f"""
write("shop.py", "def secret_formula(number):\\\\n    return number * 41\\\\n")
write("tests/test_shop.py", "def test_formula():\\\\n    assert True\\\\n")
print("I wrote secret_formula in {{}} with {SECRET}".format(os.getcwd()))
done(words="The formula is in shop.py.")
"""


@pytest.mark.parametrize("name", ["night.html", "night.svg"])
def test_a_shared_night_has_nothing_of_the_project(tmp_path: Path, name: str) -> None:
    """No line of a diff, no name of a file, a test or a directory, no words of anybody, no secret;
    titles only where they are asked for."""
    asked = story("US-1", "Hide the formula", acceptanceCriteria=["formula(2) is 196682"])
    made = sandbox(tmp_path, TELLING, stories=[asked], checks=[["test", "-d", "."]])
    assert made.run().code == 0
    file = tmp_path / name
    said = made.ralph("report", "--share", str(file))
    assert said.code == 0, said.text
    shown = file.read_text().replace("&#160;", " ")
    assert "1 of 1 story passed" in shown
    hidden = (
        "formula", "shop", "test_", "tests", "US-1", "196682", "98341", "main", SECRET[:16],
        str(tmp_path), tmp_path.name, str(Path.home()), "http-equiv=\"refresh", "<script",
    )  # fmt: skip
    assert "url(" not in shown.replace("url(#", ""), "it needs the network"
    words = shown.partition("</style>")[2]
    assert [word for word in hidden if word in words.casefold() or word in words] == []
    assert made.ralph("report", "--share", str(file), "--titles").code == 0
    assert "Hide the formula" in file.read_text().replace("&#160;", " ")


def test_a_night_is_shared_as_a_page_or_a_picture(box: Sandbox, tmp_path: Path) -> None:
    """Another ending, a directory that is not there, and titles of nothing are refused."""
    for words in (["--share", str(tmp_path / "night.png")], ["--titles"]):
        assert box.ralph("report", *words).code == 64
    nowhere = str(tmp_path / "no/where/night.html")
    assert box.ralph("report", "--share", nowhere).code != 0
