"""Git has one stash for all work trees: what agents of lanes stash stays with their own lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kill_points import to_be_killed_at
from tests.lanes.yards import landed_once, starts, stories_of, yard

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
OTHER = '{"a": "b", "b": "a"}[STORY]'


def meeting(*steps: str) -> str:
    """An agent of which two take these steps one after the other, each waiting for the other."""
    lines = [f"OTHER = {OTHER}"]
    for number, step in enumerate(steps):
        lines += [step, f'say(f"{number}-{{STORY}}"); until(f"{number}-{{OTHER}}")']
    return "\n".join(lines)


def run(command: str) -> str:
    """A step that is a command."""
    return f"subprocess.run({command!r}, shell=True)"


@pytest.mark.parametrize("order", ["in turn", "at once"])
@pytest.mark.parametrize("push", ["git stash -u -q", "git add -A && git stash -q"])
def test_two_agents_that_stash_and_pop_keep_their_own(
    tmp_path: Path, push: str, order: str
) -> None:
    """Each popped what the other had stashed: both commits have their own file, and it is said."""
    steps = [run(push), run("git stash pop")]
    if order == "in turn":
        steps = [f'STORY == "{name}" and {step}' for step in steps for name in "ab"]
    agent = meeting('write(f"{STORY}.txt", STORY)', *steps) + "\ndone()\n"
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert [starts(box, name) for name in "ab"] == [1, 1]
    if order == "in turn":  # else each may have met its own
        assert "share git's stash" in done.text
    assert box.git("stash", "list") == ""
    assert box.ralph("lanes", "clean").code == 0


def test_changes_of_files_that_are_there_come_back_too(tmp_path: Path) -> None:
    """Edited, and new in a directory: each lane has its own of it again."""
    steps = (
        'write(f"dir/{STORY}.txt", STORY); write(f"{STORY}.old", "new");'
        ' write(f"{STORY}.txt", STORY)',
        run("git stash -u -q"),
        run("git stash pop"),
    )
    files = {f"{name}.old": f"{name}\n" for name in "ab"}
    box = yard(tmp_path, meeting(*steps) + "\ndone()\n", stories=stories_of("a", "b"), files=files)
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    for name in "ab":
        made = box.git("log", "--format=%H", f"--grep=^{name}: Do", "main")
        changed = box.git("show", "--name-status", "--no-renames", "--format=", made).split("\n")
        own = [line for line in changed if line.split("\t")[1] not in ("prd.json", "progress.txt")]
        assert own == [f"M\t{name}.old", f"A\t{name}.txt", f"A\tdir/{name}.txt"]
    assert box.ralph("replay").code == 0


def test_a_stash_that_only_the_other_popped_comes_back(tmp_path: Path) -> None:
    """`a` stashes, `b` pops it without having stashed, and `a` finds nothing to pop."""
    agent = (
        meeting(
            'write(f"{STORY}.txt", STORY)',
            f'STORY == "a" and {run("git stash -u -q")}',
            f'STORY == "b" and {run("git stash pop")}',
            f'STORY == "a" and {run("git stash pop")}',
        )
        + "\ndone()\n"
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert [starts(box, name) for name in "ab"] == [1, 1]


def test_after_a_crash_it_is_put_right_as_well(tmp_path: Path) -> None:
    """Killed when one of the agents had ended: what they have of each other is still found."""
    agent = meeting('write(f"{STORY}.txt", STORY)', run("git stash -u -q"), run("git stash pop"))
    box = yard(tmp_path, agent + "\ndone()\n", stories=stories_of("a", "b"))
    killed = box.run("--lanes", "2", env=to_be_killed_at("journal.agent_ended.committed:2"))
    assert killed.code == -9, killed.text
    done = box.run("--continue")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")


def test_what_was_changed_after_it_was_popped_is_said(tmp_path: Path) -> None:
    """It cannot be told apart any more: the story does not land, and its agent hears why."""
    agent = (
        "if START > 1:\n"
        '    pathlib.Path({"a": "b", "b": "a"}[STORY] + ".txt").unlink(missing_ok=True)\n'
        "    write(f'{STORY}.txt', STORY); done(); sys.exit(0)\n"
        + meeting(
            'write(f"{STORY}.txt", STORY); write(f"{STORY}.more", STORY)',
            *(f'STORY == "{name}" and {run("git stash -u -q")}' for name in "ab"),
            *(f'STORY == "{name}" and {run("git stash pop")}' for name in "ab"),
            'STORY == "a" and write("b.txt", "changed")',
        )
        + "\ndone()\n"
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "b.txt" in (box.state / "prompt-a-2").read_text()
    assert box.git("show", "main:a.txt") == "a"
    assert box.git("show", "main:b.txt") == "b"
    assert starts(box, "b") == 1


def test_a_person_s_stash_is_put_back(tmp_path: Path) -> None:
    """An agent pops it in its lane: it is out of there and in the stash again, and said."""
    agent = f'if STORY == "a": {run("git stash pop")}\n{HONEST}'
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    (box.root / "base.txt").write_text("half done\n")
    box.git("stash", "-q")
    before = box.git("rev-parse", "refs/stash")
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert box.git("rev-parse", "refs/stash") == before
    assert "WIP on main" in box.git("stash", "list")
    assert "share git's stash" in done.text


@pytest.mark.parametrize(
    "steps",
    [
        (run("git stash -u -q && git stash pop -q"),),
        (f'STORY == "a" and {run("git stash -u -q; git stash pop -q")}', ""),
        (
            f'STORY == "a" and {run("git stash -u -q")}',
            f'STORY == "b" and {run("git stash -u -q; git stash pop -q")}',
            f'STORY == "a" and {run("git stash pop -q")}',
        ),
    ],
    ids=["at once", "alone", "nested"],
)
def test_agents_that_pop_their_own_are_left_alone(tmp_path: Path, steps: tuple[str, ...]) -> None:
    """Nothing is put right that is right."""
    agent = meeting('write(f"{STORY}.txt", STORY)', *steps) + "\ndone()\n"
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert [starts(box, name) for name in "ab"] == [1, 1]


def test_what_an_agent_threw_away_stays_away(tmp_path: Path) -> None:
    """A stash that was dropped on purpose is nobody's loss, whatever the other lane does."""
    agent = meeting(
        'write("try.txt", STORY)',
        f'STORY == "a" and {run("git stash -u -q && git stash drop -q")}',
    )
    agent += '\nif STORY == "b": os.remove("try.txt")\n' + HONEST
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert "share git's stash" not in done.text
