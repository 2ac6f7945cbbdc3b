"""Hooks of a person that rewrite our message: the commit is ours all the same, and found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kill_points import to_be_killed_at
from tests.lanes.yards import starts, stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox

GREEN = [["true"]]
HOOKS = {
    "commit-msg": 'head -n 1 "$1" > "$1.short" && mv "$1.short" "$1"\n',
    "post-commit": """\
[ -n "$AMENDING" ] && exit 0
export AMENDING=1
git commit -q --amend --no-verify -m "$(git log -1 --format=%s) [TEAM-1]"
""",
}
WORKS = 'write(f"{STORY}.txt", STORY)\ndone()\n'


def with_hook(box: Sandbox, name: str) -> Sandbox:
    """The repository with one of these hooks."""
    hook = box.root / ".git/hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{HOOKS[name]}")
    hook.chmod(0o755)
    return box


@pytest.mark.parametrize("hook", HOOKS)
def test_a_commit_without_our_trailers_is_ours(tmp_path: Path, hook: str) -> None:
    """Each story is done once, a second run starts nobody, and it can be sent back."""
    box = with_hook(sandbox(tmp_path, WORKS, stories=3, checks=GREEN), hook)
    done = box.run("--max-iterations", "8")
    assert done.code == 0, told(done)
    assert box.starts == 3, told(done)
    assert "Ralph-" not in box.git("log", "--format=%B")
    again = box.run()
    assert again.code == 0, told(again)
    assert box.starts == 3, told(again)
    back = box.ralph("reject", "US-2", "not", "so")
    assert back.code == 0, told(back)
    assert "taken out" in back.text, told(back)
    assert not (box.root / "US-2.txt").exists()
    assert (box.root / "US-3.txt").exists()


@pytest.mark.parametrize("hook", HOOKS)
def test_a_commit_without_our_trailers_is_found_after_a_crash(tmp_path: Path, hook: str) -> None:
    """Killed between the commit and its note, the story is not committed or done again."""
    box = with_hook(sandbox(tmp_path, WORKS, stories=2, checks=GREEN), hook)
    cut = box.run(env=to_be_killed_at("journal.intervene.uncommitted:1"))
    assert cut.code == -9, told(cut)
    done = box.run("--continue", "--max-iterations", "8")
    assert done.code == 0, told(done)
    assert box.starts == 2, told(done)
    assert len(box.subjects()) == 3, box.subjects()
    again = box.run()
    assert (again.code, box.starts) == (0, 2), told(again)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_landed_commit_without_our_trailers_is_ours(tmp_path: Path, hook: str) -> None:
    """In lanes too: each story is landed once, also after a crash that fell behind the commit."""
    box = with_hook(yard(tmp_path, WORKS, stories=stories_of("a", "b", "c")), hook)
    cut = box.run("--lanes", "2", env=to_be_killed_at("landing.committed"))
    assert cut.code == -9, told(cut)
    done = box.run("--lanes", "2", "--continue", "--max-iterations", "9")
    assert done.code == 0, told(done)
    assert [starts(box, name) for name in "abc"] == [1, 1, 1], told(done)
    assert len(box.subjects()) == 4, box.subjects()
    again = box.run("--lanes", "2")
    assert again.code == 0, told(again)
    assert [starts(box, name) for name in "abc"] == [1, 1, 1], told(again)
