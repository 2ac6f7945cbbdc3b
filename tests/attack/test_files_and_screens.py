"""Files with second names, journals with views, and words that act on a terminal."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from ralphloop.atomic import append
from ralphloop.errors import JournalError, RepositoryError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from ralphloop.room import new_file, own_opener
from ralphloop.text.plain import on_screen
from tests.attack.test_trust import Clone
from tests.conftest import RunRalph

pytestmark = pytest.mark.attack

HOSTILE = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\x9b2Jd\x1b]0;title\x07e\u202ef\rg\x08h"


@pytest.mark.parametrize("linking", ["link", "hard link", "linked directory"])
def test_a_file_with_another_name_is_not_written(tmp_path: Path, linking: str) -> None:
    """Neither its end nor its beginning: nothing is emptied before it is looked at."""
    precious = tmp_path / "elsewhere" / "precious"
    precious.parent.mkdir()
    precious.write_text("mine\n")
    path = tmp_path / ".ralph" / "transcripts" / "r1" / "precious"
    path.parent.parent.mkdir(parents=True)
    if linking == "linked directory":
        path.parent.symlink_to(precious.parent)
    else:
        path.parent.mkdir()
        path.symlink_to(precious) if linking == "link" else path.hardlink_to(precious)
    with pytest.raises(OSError, match=r".+"), open(path, "ab", opener=own_opener):
        pass
    with pytest.raises(OSError, match=r".+"):
        new_file(path)
    assert precious.read_text() == "mine\n"


def test_progress_with_a_second_name_is_not_added_to(tmp_path: Path) -> None:
    """The other name may be a file of the user's home."""
    (tmp_path / "precious").write_text("mine\n")
    (tmp_path / "progress.txt").hardlink_to(tmp_path / "precious")
    with pytest.raises(RepositoryError, match="hard link"):
        append(tmp_path / "progress.txt", b"x", within=tmp_path)
    assert (tmp_path / "precious").read_text() == "mine\n"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW more AS WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n)"
        " SELECT x FROM n",
        "CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM iterations; END",
    ],
)
def test_a_journal_with_something_that_runs_is_refused(tmp_path: Path, sql: str) -> None:
    """A view can run for ever, a trigger can write what we did not."""
    path = tmp_path / ".ralph" / "journal.db"
    Journal.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
    for open_journal in (Journal.open, JournalReader.open):
        with pytest.raises(JournalError, match="not ours"):
            open_journal(path)


def test_whatever_is_printed_does_nothing_but_show() -> None:
    """Colours stay, everything else that acts is gone, and what turns words round is seen."""
    shown = on_screen(f"\x1b[31mred\x1b[0m {HOSTILE}")
    assert shown.startswith("\x1b[31mred\x1b[0m ")
    assert not set("\x07\x08\r\x9b\u202e") & set(shown)
    assert "<U+202E>" in shown
    assert "\x1b" not in on_screen(HOSTILE, colours=False)
    assert on_screen("plain → text\n\tтекст") == "plain → text\n\tтекст"


@pytest.mark.parametrize("part", ["--prompt", "--stderr", "", "--json"])
def test_what_an_agent_and_a_story_say_does_not_reach_the_terminal(
    tmp_path: Path, part: str
) -> None:
    """`log` in all its forms, the run itself, status and stories pass one gate; --raw is exact."""
    clone = Clone(tmp_path)
    agent = (clone.root / "agent.py").read_text()
    clone.write("agent.py", f"{agent}\nprint({HOSTILE!r}, file=sys.stderr)\nprint({HOSTILE!r})\n")
    clone.write("PROMPT.md", f"Work. {HOSTILE}\n")
    clone.commit()
    run = clone.ralph("run", "--trust", "-v", *([part] if part == "--json" else []))
    said = [run.stdout, run.stderr]
    if part != "--json":
        said += [clone.ralph("log", *part.split()).stdout, clone.ralph("status").stdout]
        assert "a" in said[2]
    for text in said:
        assert not set("\x07\x08\x1b\x9b\u202e") & set(text), text
    raw = clone.ralph("log", "--raw", "--stderr")
    assert "\x1b]52" in raw.stdout


def test_raw_output_is_refused_on_a_terminal(tmp_path: Path) -> None:
    """It can do anything there; --yes is a person's word."""
    clone = Clone(tmp_path)
    assert clone.ralph("run", "--trust").returncode == 3
    code, said = clone.on_terminal("", "log", "--raw")
    assert (code, "--raw --yes" in said) == (64, True)
    assert clone.on_terminal("", "log", "--raw", "--yes")[0] == 0


@pytest.mark.parametrize("name", ["\u200b", "US-\u202e1", "\u2066", "A\u200f"])
def test_an_id_that_cannot_be_seen_is_refused(
    name: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Two stories must not look alike, nor read backwards."""
    story = {"id": name, "title": "x", "passes": False}
    (tmp_path / "prd.json").write_text(json.dumps({"userStories": [story]}))
    done = run_ralph("run", "--dry-run", cwd=tmp_path)
    assert (done.returncode, "cannot be seen" in done.stderr) == (65, True), done


def test_our_directory_is_for_us_alone(tmp_path: Path) -> None:
    """Others on the machine read nothing that an agent said."""
    clone = Clone(tmp_path)
    assert clone.ralph("run", "--trust").returncode == 3
    assert (clone.root / ".ralph").stat().st_mode & 0o777 == 0o700
