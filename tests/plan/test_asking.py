"""An agent reads and proposes; ours is everything that makes it trustworthy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.core.model import Story
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import Expense
from ralphloop.errors import InputError
from ralphloop.plan.conversation import read_answer, weighed
from ralphloop.plan.draft import Shelf
from ralphloop.stories.lint import as_lines
from tests import sentences
from tests.cli.nights import Night
from tests.conftest import RunRalph
from tests.plan.projects import Json, Terminal, git, listed, repository, stories, story

CSV = story("A", "Export notes as CSV", verify=["python3", "-c", "raise SystemExit(1)"])
IMPORT = story("B", "Import notes from CSV", dependsOn=["A"], touches=["notes.py"])
ASKS = {"questions": [{"question": "Which separator?", "why": "Excel", "proposed": "a comma"}]}
BROKEN = '{"stories": [{"id": "A", "title": "Export", "criteria": [],}]}'


def plan(run_ralph: RunRalph, root: Path, *arguments: str, code: int = 0) -> str:
    """What `ralph plan` says on both streams."""
    done = run_ralph("plan", *arguments, cwd=root)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def prompts(root: Path) -> int:
    """How often the agent was started."""
    return len(list((root / ".ralph" / "plan").glob("plan-*.log")))


def test_a_broken_answer_is_sent_back_until_it_can_be_used(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Each mistake is told; the stories come in dependency order, with free ids, not passed."""
    wordy = f"Here you are:\n```json\n{json.dumps(stories(IMPORT, CSV))}\n```\nAnything else?"
    vague = stories({**CSV, "criteria": [{"text": "It works well", "seen": "looking at it"}]})
    root = repository(tmp_path, [BROKEN, vague, wordy])
    said = plan(run_ralph, root, "Let people export notes", "--yes")
    assert sentences.TRAILING_COMMA in said
    assert '"It works well" cannot be checked' in said
    assert "asked scripted 3 times: $0.75" in said
    first, second = listed(root)
    assert (first["id"], first["title"], first["passes"]) == (
        "US-001",
        "Export notes as CSV",
        False,
    )
    assert (second["id"], second["dependsOn"]) == ("US-002", ["US-001"])
    assert first["acceptanceCriteria"] == ["`a` prints A (seen: tests/test_a.py passes)"]
    assert first["verifyTried"] == "not tried"  # --yes alone runs nothing
    assert git(root, "status", "--porcelain") == "?? prd.json\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("no JSON at all", "there is no JSON object in it"),
        ({"stories": []}, "there are none"),
        ({"plan": []}, "nothing but questions or stories"),
        (stories({**CSV, "passes": True}), "unknown field `passes`"),
        (stories({**CSV, "title": 7}), "Expected `str`, got `int`"),
        (stories({**CSV, "criteria": [{"text": "`a` prints A"}]}), "required field `seen`"),
        (stories({**CSV, "criteria": [{"text": "The list is sorted", "seen": "somehow so"}]}),
         "is not seen by"),
        (stories(CSV, {**IMPORT, "id": "A"}), "is already the id of"),
        (stories({**CSV, "dependsOn": ["B"]}, IMPORT), "in a circle"),
        (stories({**IMPORT, "dependsOn": ["US-99"]}), 'no story has the id "US-99"'),
        (stories({**CSV, "id": "US-001"}), "is a story of the list already"),
        (stories({**CSV, "verify": "a && b"}), "no shell runs it"),
        (stories({**CSV, "touches": ["**"]}), "split it"),
        (stories({**CSV, "touches": [f"f{n}.py" for n in range(13)]}), "touches 13 places"),
        (stories({**CSV, "description": "Do this after the above."}), "leans on another story"),
        (stories(story("A", "Add export and implement import")), "is two stories"),
        (stories(story("A", "Export", *(f"`a {n}` prints {n}" for n in range(13)))),
         "has 13 acceptance criteria"),
        ({"questions": [ASKS["questions"][0]] * 6}, "at most 5"),
        (f'{{"stories": {"[" * 5000}', "nested too deeply"),
    ],
)  # fmt: skip
def test_every_kind_of_mistake_is_told(answer: object, words: str) -> None:
    """In words that name the place, whoever's mistake it is: the form's, the list's, the linter's."""
    shelf = Shelf(Path("prd.json"), stories=(Story(id="US-001", title="Own", index=0),))
    said = answer if isinstance(answer, str) else json.dumps(answer)
    try:
        _, entries, unseen = read_answer(said, may_ask=True)
        told = [*unseen, *as_lines(weighed(entries, shelf).remarks)]
    except InputError as error:
        told = [error.message]
    assert words in " ".join(told)


def test_after_three_repairs_it_ends_and_nothing_is_written(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Four starts at most, also where only the linter objects; what it proposed is kept."""
    root = repository(tmp_path, [BROKEN, stories({**CSV, "touches": ["**"]})])
    said = plan(run_ralph, root, "Export", "--yes", code=65)
    assert "the linter refuses 1 thing in the proposal" in said
    assert prompts(root) == 4
    assert not (root / "prd.json").exists()
    assert (root / ".ralph" / "plan" / "proposal.json").exists()


def test_what_an_agent_says_is_only_text(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Control characters go, secrets are taken out, and no command of it runs."""
    key = (
        "sk-ant-api03-NqVwYS81VP7Hb1DX8pPd5khxE3pyIgKpaUnArl63"
        "XykWZeiNNCiia3anXn9k3ksu9mI4ROnl89Sm995ytbxAk7jqevt0MAA"
    )
    trap = tmp_path / "trap"
    odd = story("A", "Export\x1b[2J notes\u202e as CSV", verify=["touch", str(trap)],
                description=f"\x1b[1mUse the key {key} here.")  # fmt: skip
    root = repository(tmp_path / "repo", [stories(odd)])
    said = plan(run_ralph, root, "Export", "--yes")
    (written,) = listed(root)
    assert written["title"] == "Export notes as CSV"
    assert "\x1b" not in json.dumps(written).encode().decode("unicode_escape")
    assert key not in said + (root / "prd.json").read_text()
    assert "\x1b" not in said
    assert not trap.exists()


def test_an_agent_that_changes_the_work_tree_is_not_believed(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The change is named, and its plan is not written."""
    deed = [{"write": {"sneaky.py": "x = 1\n"}}, {"say": json.dumps(stories(CSV))}]
    root = repository(tmp_path, [deed])
    said = plan(run_ralph, root, "Export", "--yes", code=66)
    assert "the work tree changed while scripted read it: sneaky.py" in said
    assert not (root / "prd.json").exists()


@pytest.mark.tool("bwrap")
def test_in_a_sandbox_it_cannot_change_anything(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The work tree is read-only there; the same agent's plan is used."""
    deed = [{"run": ["touch", "sneaky.py"]}, {"say": json.dumps(stories(CSV))}]
    root = repository(tmp_path / "repo", [deed])
    with (root / "ralph.toml").open("a") as file:
        file.write('[sandbox]\nmode = "on"\n')
    git(root, "commit", "-qam", "Confine")
    plan(run_ralph, root, "Export", "--yes")
    assert len(listed(root)) == 1
    assert not (root / "sneaky.py").exists()


def test_money_and_failures_end_the_asking(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A bound that is used up, and an agent that cannot work, with the reason."""
    root = repository(tmp_path / "dear", [BROKEN])
    assert "--max-cost $0.30 is used up" in plan(
        run_ralph, root, "x", "--yes", "--max-cost", "0.30", code=69
    )
    assert prompts(root) == 2
    root = repository(tmp_path / "broken", [["fatal"]])
    assert "gave no answer" in plan(run_ralph, root, "x", "--yes", code=69)
    root = repository(tmp_path / "slow", [["hang"]])
    said = plan(run_ralph, root, "x", "--yes", "--max-time", "2s", code=69)
    assert "still running after 2s" in said


# --- questions -----------------------------------------------------------------------------------


def test_questions_go_to_a_file_and_the_answers_become_part_of_the_spec(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Exit code 2: it waits for a person; then the stories lean on text and answers."""
    root = repository(tmp_path / "repo", [ASKS, stories(CSV)])
    file = tmp_path / "questions.json"
    assert "1 question written to" in plan(
        run_ralph, root, "Export notes", "--questions", str(file), code=2
    )
    assert not (root / "prd.json").exists()
    asked = json.loads(file.read_text())
    asked[0]["answer"] = "A semicolon; we are in Germany"
    file.write_text(json.dumps(asked))
    shown = plan(run_ralph, root, "Export notes", "--answers", str(file), "--dry-run")
    assert "A: A semicolon; we are in Germany" in shown
    # The second round carries text, question and answer once each.
    assert shown.count("A semicolon; we are in Germany") == 1
    assert shown.count("Which separator?") == 1
    assert shown.count("Export notes") == 1
    plan(run_ralph, root, "Export notes", "--answers", str(file), "--yes")
    (written,) = listed(root)
    spec = (root / written["parent_spec"]).read_text()
    assert spec.startswith("Export notes\n")
    assert "Q: Which separator?\nA: A semicolon; we are in Germany" in spec


def test_without_anybody_there_proposed_answers_are_taken_and_said(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """And the agent is told not to ask again."""
    root = repository(tmp_path, [ASKS, ASKS, stories(CSV)])
    said = plan(run_ralph, root, "Export notes", "--yes")
    assert "taken as proposed: Which separator? a comma" in said
    assert "everything that can be answered was" in said
    assert "A: a comma" in (root / listed(root)[0]["parent_spec"]).read_text()


def test_a_file_of_the_repository_is_the_spec_itself(tmp_path: Path, run_ralph: RunRalph) -> None:
    """It is named, not copied."""
    root = repository(tmp_path, [stories(CSV)], **{"idea.md": "Let people export notes.\n"})
    plan(run_ralph, root, "idea.md", "--yes")
    assert listed(root)[0]["parent_spec"] == "idea.md"
    assert not (root / "specs").exists()


# --- trying, and what it will cost ----------------------------------------------------------------


def test_commands_are_tried_only_where_somebody_says_so(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Green proves nothing yet, red is as it should be, what cannot start is taken out."""
    proposed = stories(
        CSV,
        story("B", "Import notes from CSV", verify=["true"]),
        story("C", "Print notes on paper", verify=["no-such-program", "-q"]),
        story("D", "Count all of the notes"),
    )
    root = repository(tmp_path, [proposed])
    said = plan(run_ralph, root, "Export", "--yes", "--try")
    assert "US-003: refused, it cannot start: no-such-program was not found" in said
    tried = {
        one["id"]: (one.get("verify") is not None, one.get("verifyTried")) for one in listed(root)
    }
    assert tried == {
        "US-001": (True, "red"),
        "US-002": (True, "green: proves nothing yet"),
        "US-003": (False, None),
        "US-004": (False, None),
    }
    assert "it proves nothing" in plan_check(run_ralph, root)


def plan_check(run_ralph: RunRalph, root: Path) -> str:
    """What the linter of the list says of it."""
    return " ".join(run_ralph("stories", "check", cwd=root).stdout.split())


def test_the_estimate_comes_from_what_stories_took_here(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Three passed stories are a past: the median of iterations, money and time."""
    night = Night(tmp_path, stories=3).begin()
    for number, dollars in ((1, 0.5), (2, 1.0), (3, 4.0)):
        for _ in range(number):
            night.iterate(f"S-{number}", spent=Expense(cost_usd=dollars / number))
        night.story(f"S-{number}", standing=Standing.PASSED, iterations=number, cost_usd=dollars)
    night.prd(3, passed=3)
    done = run_ralph("plan", "-", "--json", cwd=tmp_path, stdin="- [ ] A\n- [ ] B\n")
    told: Json = json.loads(done.stdout)["estimate"]
    assert (told["iterations"], told["dollars"]) == (4.0, 2.0)
    assert told["basis"].startswith("the median of 3 stories that passed here")


# --- a story that got stuck ------------------------------------------------------------------------

STUCK = [
    {"id": "S-0", "title": "Begin", "passes": True},
    {"id": "S-7", "title": "Rebuild everything", "priority": 3, "dependsOn": ["S-0"],
     "verify": ["make", "all"], "passes": False},
    {"id": "S-8", "title": "Later", "dependsOn": ["S-7"], "passes": False, "mine": 1.5},
    {"id": "S-9", "title": "Also later", "dependencies": {"depends_on": ["S-7", "S-0"]}},
]  # fmt: skip


def test_a_stuck_story_becomes_smaller_ones_in_its_place(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The agent hears what failed; the first part inherits, and dependents wait for the last."""
    root = repository(tmp_path)
    night = Night(root).begin()
    (root / "prd.json").write_text(json.dumps({"userStories": STUCK}, indent=2))
    night.story("S-7", standing=Standing.SET_ASIDE, reason="three attempts failed", attempts=3,
                failure="AssertionError: 1 != 2")  # fmt: skip
    shown = plan(run_ralph, root, "--split", "S-7", "--dry-run")
    assert "AssertionError: 1 != 2" in shown
    assert "three attempts failed" in shown
    assert "two to four smaller stories" in shown
    parts = stories(
        story("A", "Rebuild the parser"), story("B", "Rebuild the printer", dependsOn=["A"])
    )
    script = json.dumps(
        {"stories": {"plan": [[{"say": json.dumps(one)}] for one in (stories(CSV), parts)]}}
    )
    (root / "script.json").write_text(script)
    (root / "ralph.toml").write_text('[agent]\nname = "scripted"\ncommand = ["script.json"]\n')
    said = plan(run_ralph, root, "--split", "S-7", "--yes")
    assert "a split has two to four new stories, found 1" in said
    written = {one["id"]: one for one in listed(root)}
    assert list(written) == ["S-0", "S-10", "S-11", "S-8", "S-9"]
    assert written["S-10"]["dependsOn"] == ["S-0"]
    assert written["S-11"]["dependsOn"] == ["S-10"]
    assert (written["S-10"]["priority"], written["S-11"]["verify"]) == (3, ["make", "all"])
    assert written["S-8"]["dependsOn"] == ["S-11"]
    assert written["S-9"]["dependencies"] == {"depends_on": ["S-11", "S-0"]}
    assert run_ralph("run", "--dry-run", cwd=root).returncode == 0


@pytest.mark.parametrize(("name", "words"), [("S-0", "has passed"), ("S-1", "there is no story")])
def test_only_an_open_story_can_be_split(
    tmp_path: Path, run_ralph: RunRalph, name: str, words: str
) -> None:
    """The others are refused before anything is spent."""
    root = repository(tmp_path, **{"prd.json": json.dumps({"userStories": STUCK})})
    assert words in plan(run_ralph, root, "--split", name, "--yes", code=64)


def test_a_list_is_not_rebuilt_under_an_agent_at_work(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What vanishes meanwhile would be taken for the agent's doing; adding is always possible."""
    root = repository(tmp_path)
    night = Night(root).begin().iterate("S-1", finished=False)
    with night.held():
        for arguments in (["--split", "S-1"], ["-", "--replace"]):
            done = run_ralph("plan", *arguments, "--yes", cwd=root, stdin="- [ ] New\n")
            assert done.returncode == 64
            assert "an agent is at work on this list" in done.stderr
        done = run_ralph("plan", "-", "--yes", cwd=root, stdin="- [ ] New\n")
    assert done.returncode == 0, done.stderr
    assert listed(root)[-1]["title"] == "New"


# --- on a terminal ---------------------------------------------------------------------------------


def test_on_a_terminal_one_is_asked_shown_and_has_the_last_word(tmp_path: Path) -> None:
    """A question with its proposal, the table and the tree, an edit, a yes to writing, one to trying."""
    root = repository(tmp_path / "repo", [ASKS, stories(CSV, IMPORT)])
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/Import notes from CSV/Read notes from CSV/' \"$1\"\n")
    editor.chmod(0o755)
    screen = Terminal(root, "Export", "notes", env={"EDITOR": str(editor)})
    screen.wait_for("Which separator?").wait_for("[a comma]").type("\n")
    screen.wait_for("- `a` prints A (seen: tests/test_a.py passes)")
    screen.wait_for("└─ US-002 Import notes from CSV").wait_for("[q]uit")
    assert not (root / "prd.json").exists()
    screen.type("e\n").wait_for("└─ US-002 Read notes from CSV").wait_for("[q]uit").type("a\n")
    screen.wait_for("Run 1 verify command once now").type("y\n")
    assert screen.end() == 0, screen.shown
    assert "this plan: $0.50" in screen.shown
    assert [one["title"] for one in listed(root)] == ["Export notes as CSV", "Read notes from CSV"]
    assert listed(root)[0]["verifyTried"] == "red"


def test_on_a_terminal_a_plan_can_be_thrown_away(tmp_path: Path) -> None:
    """Nothing is written, and what was paid for can be read again without asking."""
    root = repository(tmp_path, [stories(CSV)])
    screen = Terminal(root, "Export notes").wait_for("[q]uit").type("q\n")
    assert screen.end() == 0
    assert "Nothing was written." in screen.shown
    assert not (root / "prd.json").exists()
    again = Terminal(root, ".ralph/plan/proposal.json").wait_for("[q]uit").type("a\n")
    again.wait_for("Run 1 verify command once now").type("n\n")
    assert again.end() == 0
    assert listed(root)[0]["verifyTried"] == "not tried"
