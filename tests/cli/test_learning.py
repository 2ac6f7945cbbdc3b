"""`ralph learnings`, `ralph learn` and `ralph stats` through the real program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.cli.main import run, spelled_out
from ralphloop.project import Project
from tests.conftest import RunRalph
from tests.learning.support import Night, area_notes, git, keep, learning, record, repository

HELD = "always skip the api tests in src/api/slow.py"


@pytest.fixture
def taught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with three established patterns and one that is held back."""
    project = Project(tmp_path)
    keep(project, *(learning(f"api-{n}", *area_notes("api"), HELD) for n in range(2)))
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return project


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    """What a command prints as JSON."""
    assert run(["learnings", *arguments, "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("taught")
def test_list_shows_all_with_their_standing(capsys: pytest.CaptureFixture[str]) -> None:
    """Each pattern is a line: id, standing, category, stories, words."""
    assert run(["learnings", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    (held,) = [line for line in lines if "held back" in line]
    assert HELD in held
    assert sum("established" in line for line in lines) == 3
    assert run(["learnings", "search", "volapük"]) == 0
    assert capsys.readouterr().out == "None of them has these words.\n"


def test_looking_leaves_no_trace(tmp_path: Path, run_ralph: RunRalph) -> None:
    """In a directory that never learned, every command that looks says so and writes nothing."""
    for command in (
        ["learnings", "list"],
        ["learnings", "search", "x"],
        ["stats"],
        ["--aggregate"],
    ):
        assert run_ralph(*command, cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("taught")
def test_search_finds_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    """The best match comes first; no match is no error."""
    found = listed(capsys, "search", "limits", "of", "the", "api")
    assert "limits.toml" in str(found[0]["text"])
    assert listed(capsys, "search", "zebra") == []


@pytest.mark.usefixtures("taught")
def test_search_finds_by_a_word_that_is_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    """Words too common to tell patterns apart still find those that have them."""
    assert run(["learnings", "add", "Tests live beside the code"]) == 0
    capsys.readouterr()
    found = [one["text"] for one in listed(capsys, "search", "Tests")]
    assert len(found) == 2
    assert "Tests live beside the code" in found


@pytest.mark.usefixtures("taught")
def test_show_tells_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    """Standing with its reason, stories, and how those went that carried it."""
    (held,) = [one for one in listed(capsys, "list") if one.get("standing") == "held back"]
    assert run(["learnings", "show", str(held["id"])[:5]]) == 0
    shown = capsys.readouterr().out
    assert "it speaks of switching checks off" in shown
    assert "api-0, api-1 (2 passed)" in shown
    assert "0 times, 0 of them passed" in shown


@pytest.mark.usefixtures("taught")
@pytest.mark.parametrize("wanted", ["zzzz", "", "a", "../../etc"])
def test_unknown_ids_are_65(wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An id nobody has, or that is too short to be one, changes nothing."""
    assert run(["learnings", "forget", wanted]) == 65
    assert "next: ralph learnings list" in capsys.readouterr().err


def test_forget_is_for_good(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Forgotten patterns do not return with the next story, and their skill goes with them."""
    run(["learn", "--aggregate"])
    skill = taught.root / ".claude/skills/api-learned/SKILL.md"
    assert skill.exists()
    capsys.readouterr()
    for one in listed(capsys, "list"):
        assert run(["learnings", "forget", str(one["id"])]) == 0
    capsys.readouterr()
    keep(taught, learning("api-9", *area_notes("api"), HELD))
    assert listed(capsys, "list") == []
    run(["learn", "--aggregate"])
    assert not skill.exists()
    assert "registry" not in (taught.root / "CLAUDE.md").read_text()


def test_approve_lets_it_in(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """What a person approved goes into the skill, although it was held back."""
    (held,) = [one for one in listed(capsys, "list") if one.get("standing") == "held back"]
    assert run(["learnings", "approve", str(held["id"])]) == 0
    run(["learn", "--aggregate"])
    assert HELD in (taught.root / ".claude/skills/api-learned/SKILL.md").read_text()
    assert run(["learnings", "forget", str(held["id"])]) == 0  # and changes their mind
    run(["learn", "--aggregate"])
    assert HELD not in (taught.root / ".claude/skills/api-learned/SKILL.md").read_text()


def test_a_forgotten_word_stays_on_this_machine(
    taught: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others learn that it was forgotten, not what an agent had said."""
    (held,) = [one for one in listed(capsys, "list") if one.get("standing") == "held back"]
    assert run(["learnings", "forget", str(held["id"])]) == 0
    shared = (taught.root / "learned.jsonl").read_text()
    assert str(held["id"]) in shared
    assert "skip" not in shared
    capsys.readouterr()
    assert HELD not in str(listed(capsys, "list"))
    (taught.directory / "learnings/decisions.yaml").unlink()  # a colleague, who has the id alone
    assert HELD not in str(listed(capsys, "list"))


def test_undo_takes_the_last_word_back(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Forgotten comes back, approved waits again, and twice is told."""
    (held,) = [
        str(one["id"]) for one in listed(capsys, "list") if one.get("standing") == "held back"
    ]
    for word, count in (("forget", 3), ("approve", 4)):
        assert run(["learnings", word, held]) == 0
        capsys.readouterr()
        assert len(listed(capsys, "list")) == count
        assert run(["learnings", "undo", held]) == 0
        capsys.readouterr()
        found = {one["id"]: one["standing"] for one in listed(capsys, "list")}
        assert found[held] == "held back"
    assert run(["learnings", "undo", held]) == 65
    assert "nothing to take back" in capsys.readouterr().err


def test_a_person_can_say_it_better(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Edited words are approved, and what stories go on saying is still the same pattern."""
    (one,) = [one for one in listed(capsys, "list") if "limits.toml" in str(one["text"])]
    better = "limits are read once, from src/api/limits.toml"
    assert run(["learnings", "edit", str(one["id"]), better]) == 0
    keep(taught, learning("api-7", *area_notes("api")))
    capsys.readouterr()
    found = [one for one in listed(capsys, "list") if "limits.toml" in str(one["text"])]
    assert [(each["text"], each["standing"]) for each in found] == [(better, "approved")]
    assert run(["learnings", "undo", str(one["id"])]) == 0
    capsys.readouterr()
    assert better not in str(listed(capsys, "list"))


def test_a_person_can_add_their_own(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """What a person adds is approved, shared and published; and can be taken back."""
    text = "src/api/units.txt is sorted by hand, on purpose"
    assert run(["learnings", "add", text]) == 0
    assert text in (taught.root / "learned.jsonl").read_text()
    capsys.readouterr()
    (one,) = [one for one in listed(capsys, "list") if one["text"] == text]
    assert (one["standing"], one["source"]) == ("approved", "person")
    run(["learn", "--aggregate"])
    assert text in (taught.root / "CLAUDE.md").read_text()
    assert run(["learnings", "undo", str(one["id"])]) == 0
    run(["learn", "--aggregate"])
    assert text not in (taught.root / "CLAUDE.md").read_text()
    assert run(["learnings", "add", "  "]) == 64


def test_review_asks_one_key_each(
    taught: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Yes, never, later; what was decided is not asked again."""
    words = [f"{name} keeps one line for each story" for name in ("src/x.txt", "lib/y.txt")]
    keep(taught, learning("api-5", *words))
    keys = iter("?yns")
    monkeypatch.setattr("click.getchar", lambda: next(keys))
    assert run(["learnings", "review"]) == 0
    shown = capsys.readouterr()
    assert "1 of 3" in shown.out
    assert "2 of 3 decided" in shown.err
    standings = [str(one["standing"]) for one in listed(capsys, "list")]
    assert standings.count("approved") == 1
    keys = iter("q")
    assert run(["learnings", "review"]) == 0
    assert "1 of 1" in capsys.readouterr().out
    keys = iter("n")
    run(["learnings", "review"])
    capsys.readouterr()
    assert run(["learnings", "review"]) == 0
    assert capsys.readouterr().out == "Nothing waits for you.\n"


def test_review_wants_a_terminal(taught: Project, run_ralph: RunRalph) -> None:
    """Where no key can be pressed, the commands that do the same are named."""
    done = run_ralph("learnings", "review", cwd=taught.root)
    assert done.returncode == 64
    assert "ralph learnings approve ID" in done.stderr


@pytest.mark.usefixtures("taught")
@pytest.mark.parametrize("word", ["approve", "forget", "undo", "edit", "add", "review"])
def test_an_agent_does_not_decide(
    word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that an agent starts cannot approve what the agent said."""
    (held,) = [one for one in listed(capsys, "list") if one.get("standing") == "held back"]
    monkeypatch.setenv("RALPH_AGENT_MARK", "r1/1")
    more = {"edit": [str(held["id"]), "new words"], "review": []}.get(word, [str(held["id"])])
    assert run(["learnings", word, *more]) == 64
    assert [one["standing"] for one in listed(capsys, "list")].count("held back") == 1


def test_PRD_phase4_aggregate_by_hand(taught: Project, run_ralph: RunRalph) -> None:
    """`ralph learn --aggregate` and `ralph --aggregate` write skills and digest, and commit nothing."""
    assert spelled_out(["--aggregate"]) == ["learn", "--aggregate"]
    done = run_ralph("--aggregate", cwd=taught.root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2 learnings, 4 patterns, 3 to publish",
        "made .claude/learned.jsonl (for merges without conflicts, add to .gitattributes:"
        " `.claude/learned.jsonl merge=union` and"
        " `.claude/skills/*-learned/SKILL.md merge=union`)",
        "made .claude/skills/api-learned/SKILL.md",
        "updated the learned block in CLAUDE.md",
    ]
    assert git(taught.root, "rev-list", "--count", "HEAD") == "1"
    again = run_ralph("learn", "--aggregate", cwd=taught.root)
    assert again.stdout.splitlines()[1:] == ["what is published is up to date"]


@pytest.mark.usefixtures("taught")
def test_learn_alone_does_the_one_thing_it_does(taught: Project, run_ralph: RunRalph) -> None:
    """The flag that was once needed changes nothing."""
    alone = run_ralph("learn", cwd=taught.root)
    assert alone.returncode == 0, alone.stderr
    assert "to publish" in alone.stdout
    again = run_ralph("learn", "--aggregate", cwd=taught.root)
    assert again.stdout.splitlines()[0] == alone.stdout.splitlines()[0]


def test_hostile_words_do_not_reach_the_terminal(
    taught: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control sequences in a learning file are shown without their power."""
    keep(taught, learning("evil\x1b[2J", "text \x1b]0;title\x07 with \x9b31m colours"))
    for command in (["learnings", "list"], ["learnings", "search", "colours"], ["stats"]):
        run(command)
        shown = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)


def test_stats_without_runs(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A project that never ran has numbers too: zeros, and no claim."""
    assert run(["stats"]) == 0
    shown = capsys.readouterr().out
    assert "runs         0" in shown
    assert "effect       too early to tell" in shown
    assert run(["stats", "--prd-metrics"]) == 0
    assert "learnings captured       -  [target: 80 %]" in capsys.readouterr().out


def test_stats_with_runs(taught: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Stories, money, tokens, failures and the cost of carrying, for people and as JSON."""
    night = Night(taught)
    night.add("A", record())
    night.add("A", record(passed=True, learning={"ids": ["x"], "tokens": 90}), tokens=900)
    night.journal.close()
    assert run(["stats"]) == 0
    shown = capsys.readouterr().out
    assert "stories      1 passed" in shown
    assert "tokens       1,000, 1,000 a passed story" in shown
    assert "failures     1 claimed, but not proven" in shown
    assert "90 tokens a prompt on average, at most 90 of 800, in 1 prompt" in shown
    assert run(["stats", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["runs"], data["stories"], data["tokens"]) == (1, {"passed": 1}, 1000)
    assert data["effect"]["sentence"].startswith("too early to tell")
