"""`.ralph` is ours alone: no link leads out of it, nobody else reads it, and no clone brings it along."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from ralphloop.journal.journal import Journal
from ralphloop.room import ensure_private_dir, read_regular
from tests.hook.support import box as session_box
from tests.loop.projects import Sandbox, sandbox

WORKS = "write(f'{STORY}.txt'); done()"
FILES = ["holder.json", "ralph.log", "lock", "journal.db", "learnings/index.json", ".gitignore"]
ROOMS = ["", "transcripts", "objects", "reports", "learnings", "agent", "objects/pack"]


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """A repository with one story."""
    return sandbox(tmp_path, WORKS)


def mode(path: Path) -> int:
    """The permissions of a path."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("arguments", [["run"], ["run", "--detach"], ["circuit", "reset"]])
@pytest.mark.parametrize("name", FILES)
def test_a_link_in_place_of_a_file_is_refused(
    name: str, arguments: list[str], box: Sandbox, tmp_path: Path
) -> None:
    """What the link leads to is neither replaced nor added to, and the way out is said."""
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    Journal.open(box.root / ".ralph/journal.db").close()
    link = box.root / ".ralph" / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(precious)
    done = box.ralph(*arguments)
    assert (done.code, f"rm '{link}'" in done.err) == (66, True), done.text
    assert precious.read_text() == "mine\n"
    assert not list(tmp_path.glob(".ralph*"))


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", ROOMS)
def test_a_link_in_place_of_a_directory_is_refused(
    name: str, inside: bool, box: Sandbox, tmp_path: Path
) -> None:
    """Also one that stays within the project: nothing is created where it leads."""
    elsewhere = (box.root if inside else tmp_path) / "elsewhere"
    elsewhere.mkdir()
    link = box.root / ".ralph" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    done = box.run("--allow-dirty")
    assert (done.code, "is a link" in done.err) == (66, True), done.text
    assert list(elsewhere.iterdir()) == []
    assert box.starts == 0


def test_an_agent_that_plants_a_link_ends_the_run(tmp_path: Path) -> None:
    """Nothing is written where the link leads, and the error names it."""
    precious = tmp_path / "precious"
    precious.mkdir()
    plant = f"import shutil; shutil.rmtree('.ralph/reports', True); os.symlink({str(precious)!r}, '.ralph/reports')"
    box = sandbox(tmp_path, f"{plant}\n{WORKS}", stories=2)
    done = box.run()
    assert (done.code, ".ralph/reports is a link" in done.err) == (66, True), done.text
    assert list(precious.iterdir()) == []


def test_a_transcript_is_not_written_through_a_link(tmp_path: Path) -> None:
    """Even where an agent foresaw the name of the next one."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    plant = "run = pathlib.Path(f'.ralph/transcripts/{os.environ[\"RALPH_RUN_ID\"]}')"
    link = f"for n in '2.log', '2.prompt.md': (run / n).symlink_to({str(precious)!r})"
    box = sandbox(tmp_path, f"{plant}\nif START == 1:\n    {link}\n{WORKS}", stories=2)
    box.run()
    assert precious.read_text() == "mine"


def test_a_file_in_its_place_is_refused_with_the_way_out(box: Sandbox) -> None:
    """Neither more space nor other permissions would help."""
    (box.root / ".ralph").write_text("a file\n")
    done = box.ralph("run")
    assert (done.code, f"mv '{box.root / '.ralph'}'" in done.err) == (66, True), done.text


def test_a_directory_that_git_tracks_is_refused(box: Sandbox) -> None:
    """A journal that came with a clone is not ours; declared agents may come with it."""
    ensure_private_dir(box.root / ".ralph")
    (box.root / ".ralph/agents").mkdir()
    (box.root / ".ralph/agents/mine.toml").write_text("")
    box.git("add", "-f", ".ralph/agents")
    box.git("commit", "-qm", "agents")
    assert box.run("--dry-run").code == 0
    (box.root / ".ralph/holder.json").write_text("{}")
    box.git("add", "-f", ".ralph/holder.json")
    box.git("commit", "-qm", "trap")
    for arguments in ([], ["--detach"]):
        done = box.run(*arguments)
        assert (done.code, "git rm -r -q --cached .ralph" in done.err) == (66, True), done.text
    assert box.starts == 0
    box.git("rm", "-q", "-r", "--cached", ".ralph/holder.json")
    box.git("commit", "-qm", "untrack")
    assert box.run().code == 0


def test_nobody_else_can_read_what_is_kept(box: Sandbox) -> None:
    """A new directory is closed, and one from before is closed by the next run."""
    assert box.run().code == 0
    assert mode(box.root / ".ralph") == 0o700
    (box.root / ".ralph").chmod(0o755)
    assert box.ralph("circuit", "reset").code == 0
    assert mode(box.root / ".ralph") == 0o700


def test_a_loop_in_a_session_refuses_links_too(tmp_path: Path) -> None:
    """`/ralph` says so, and the target stays as it was."""
    made = session_box(tmp_path / "repo")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (made.root / ".ralph").mkdir()
    (made.root / ".ralph/holder.json").symlink_to(precious)
    assert "is a link" in made.command("ralph").reason
    assert precious.read_text() == "mine"


# --- settings of somebody else ---------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory in which another user left a ralph.toml, and ours below it."""
    if os.geteuid() != 0:
        pytest.skip("only root can make another user's file")
    place = tmp_path / "shared"
    (place / "mine").mkdir(parents=True)
    (place / "ralph.toml").write_text('[agent]\nbinary = "./evil"\n[limits]\nmax_iterations = 7\n')
    os.chown(place / "ralph.toml", 65534, 65534)
    return place


def ralph(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The real command there."""
    argv = Sandbox(place, place).argv(*arguments)
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False)


def test_settings_of_another_user_above_are_not_obeyed(shared: Path) -> None:
    """The project is where we are, and the file that is passed over is named."""
    done = ralph(shared / "mine", "config", "show")
    assert "max_iterations = 7" not in done.stdout
    assert f"{shared / 'ralph.toml'} belongs to another user" in done.stderr
    assert done.returncode == 0


def test_in_their_directory_itself_it_is_an_error(shared: Path) -> None:
    """As in /tmp: the directory is not theirs, the file is."""
    done = ralph(shared, "status")
    assert (done.returncode, "belongs to another user" in done.stderr) == (66, True)


def test_settings_of_root_and_of_ourselves_are_obeyed(shared: Path) -> None:
    """From any directory below; nothing is said about it."""
    os.chown(shared / "ralph.toml", 0, 0)
    done = ralph(shared / "mine", "config", "show")
    assert "max_iterations = 7" in done.stdout
    assert done.stderr == ""
    shutil.chown(shared, 65534)
    os.chown(shared / "ralph.toml", 65534, 65534)
    assert "max_iterations = 7" in ralph(shared, "config", "show").stdout


@pytest.mark.parametrize("size", [0, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("most", [-1, 10, 65_536, 65_537, 100_000, 50_000_000])
def test_a_file_is_read_up_to_what_was_asked_for(tmp_path: Path, size: int, most: int) -> None:
    """However large it is, and however little of what may be read is there."""
    file = tmp_path / "file"
    file.write_bytes(bytes(n % 251 for n in range(size)))
    assert read_regular(file, most=most) == file.read_bytes()[: most if most >= 0 else None]
