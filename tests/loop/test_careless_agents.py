"""Agents that break what is not theirs: the supervisor's own files, the branch, the repository."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import sandbox, story

GREEN = [["true"]]
WORKS = "write(f'src/{STORY}-{START}.txt'); "


@pytest.mark.parametrize(
    "deletes",
    ["subprocess.run(['git', 'clean', '-qfdx'])", "subprocess.run(['rm', '-rf', '.ralph'])"],
)
def test_a_deleted_journal_is_put_back_and_the_run_goes_on(
    tmp_path: Path, deletes: str, measured: Measured
) -> None:
    """`git clean -fdx` takes .ralph with it; attempts, totals and the lock are still known."""
    agent = f"""
        if START == 2:
            assert pathlib.Path('.ralph/journal.db').exists()
            {deletes}
            assert not pathlib.Path('.ralph/journal.db').exists()
        {WORKS}
        done() if START > 1 else status()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run()
    assert done.code == 0, done.text
    assert box.passes() == {"US-1": True, "US-2": True}
    assert len(box.records()) == 3
    measured(box.starts - len(box.records()))
    assert box.status()["run"]["starts"] == 3
    assert ".ralph was deleted" in done.text


LEAVES_A_MERGE = """
def git(*args):
    subprocess.run(['git', *args], check=False, stdout=subprocess.DEVNULL)
if START == 1:
    git('switch', '-qc', 'other'); write('shared.txt', 'theirs'); git('add', '-A')
    git('commit', '-qm', 'theirs'); git('switch', '-q', '-'); write('shared.txt', 'ours')
    git('add', '-A'); git('commit', '-qm', 'ours'); git('merge', '-q', 'other')
"""


def test_the_project_stays_locked_although_the_lock_file_was_deleted(tmp_path: Path) -> None:
    """A second run must not start beside the first because an agent removed the lock."""
    agent = f"""
        subprocess.run(['rm', '-rf', '.ralph'])
        while not pathlib.Path('.ralph/journal.db').exists():
            time.sleep(0.05)
        (STATE / 'back').touch()
        while not (STATE / 'tried').exists():
            time.sleep(0.05)
        {WORKS}
        done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    first = box.start()
    _wait_until((box.state / "back").exists)
    assert box.run().code == 75
    (box.state / "tried").touch()
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, out + err


def test_set_aside_works_although_the_snapshots_were_deleted(tmp_path: Path) -> None:
    """What a story began with is gone: the commit it began on stands in."""
    agent = f"""
        if STORY == 'US-1':
            {WORKS}
            if START == 2:
                subprocess.run(['rm', '-rf', '.ralph'])
            done(words=f'Try {{START}}.')
        else:
            write('green'); done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=[["test", "-e", "green"]], files={})
    done = box.run("--allow-red", "--max-iterations", "5")
    assert "US-1 is set aside" in done.text, done.text
    assert box.passes()["US-2"]


def test_a_branch_the_agent_made_becomes_the_branch_of_the_run_again(tmp_path: Path) -> None:
    """Agents like feature branches: their commits belong where the run was promised to commit."""
    agent = f"""
        if START == 1:
            subprocess.run(['git', 'switch', '-qc', 'feature/x'], check=True)
            write('committed.txt')
            subprocess.run(['git', 'add', 'committed.txt'], check=True)
            subprocess.run(['git', 'commit', '-qm', 'on my own branch'], check=True)
        if START == 2:
            subprocess.run(['git', 'checkout', '-q', '--detach'], check=True)
        {WORKS}
        done()
    """
    box = sandbox(tmp_path, agent, stories=3, checks=GREEN)
    before = box.git("branch", "--show-current")
    done = box.run("--max-time", "30s")
    assert done.code == 0, done.text
    assert box.git("branch", "--show-current") == before
    assert box.subjects()[1:] == [
        "on my own branch",
        "US-1: Do US-1",
        "US-2: Do US-2",
        "US-3: Do US-3",
    ]
    assert box.git("status", "--porcelain") == ""
    assert f"switched from {before} to feature/x" in done.text
    assert f"stay on {before}" in box.prompt(2)


def test_a_branch_that_is_no_descendant_is_left_alone(tmp_path: Path) -> None:
    """What another branch holds is not the work of this run: the run stays on its own."""
    agent = "subprocess.run(['git', 'switch', '-q', 'old'], check=True); status()"
    box = sandbox(tmp_path, agent, checks=GREEN)
    branch = box.git("branch", "--show-current")
    box.git("branch", "old")
    box.git("commit", "-q", "--allow-empty", "-m", "newer")
    old, newest = box.git("rev-parse", "old"), box.git("rev-parse", branch)
    done = box.run("--max-iterations", "2")
    assert f"the agent left {branch} for old" in done.text
    assert box.git("branch", "--show-current") == branch
    assert [box.git("rev-parse", name) for name in ("old", branch)] == [old, newest]


def test_a_merge_the_agent_left_open_goes_back_to_the_agent(tmp_path: Path) -> None:
    """A half-done merge is not done, is told to the next start, and does not stop the night."""
    agent = f"""{LEAVES_A_MERGE}
if START > 1:
    assert pathlib.Path('.git/MERGE_HEAD').exists()
    write('shared.txt', 'both'); git('add', 'shared.txt')
    git('commit', '-qm', 'merged')
done()
"""
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--max-time", "30s")
    assert done.code == 0, done.text
    assert "it says done, but a merge is in progress" in done.text
    assert "a merge is in progress" in box.prompt(2)
    assert "merged" in box.subjects()


def test_a_merge_nobody_ends_does_not_burn_the_night(tmp_path: Path, measured: Measured) -> None:
    """An agent that never ends its merge wears its attempts out; the run ends by its own rules."""
    agent = f"{LEAVES_A_MERGE}\ndone(words=f'Try {{START}}.')"
    box = sandbox(tmp_path, agent, stories=[story("US-1"), story("US-2")], checks=GREEN)
    done = box.run("--max-time", "60s")
    assert done.code == 1, done.text
    assert box.starts <= 8
    measured(box.starts)
    assert not any(box.passes().values())


def test_a_hook_that_refuses_everything_does_not_burn_the_night(
    tmp_path: Path, measured: Measured
) -> None:
    """Two stories in a row that cannot be committed are no fault of a story: the circuit opens."""
    agent = WORKS + "done(words=f'Try {START}.')"
    box = sandbox(tmp_path, agent, stories=20, checks=GREEN)
    hook = box.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho npx: not found >&2\nexit 1\n")
    hook.chmod(0o755)
    done = box.run("--max-time", "120s")
    assert done.code == 1, done.text
    assert box.starts == 6
    measured(box.starts)
    assert "the commit was refused: the pre-commit hook failed: npx: not found" in done.text
    assert "two stories in a row could not be committed" in done.text
    hook.unlink()
    again = box.run("--continue", "--max-iterations", "7")
    assert again.code == 1, again.text  # OPEN outlives the run, until a person resets it


def test_what_is_left_out_of_a_commit_is_said(tmp_path: Path) -> None:
    """A scaffold with a repository of its own cannot be committed: the story says so, and waits."""
    agent = """
        write('app/main.txt')
        subprocess.run(['git', 'init', '-q', 'app'], check=True)
        write('beside.txt'); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run()
    assert done.code == 0, done.text
    assert "passed (needs review): committed is not what was checked: app;" in done.text
    assert "not committed: app/ (a repository of its own)" in done.text
    assert "not committed: app/" in " ".join(box.ralph("stories").out.split())


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """Reading a pipe that nobody writes to would hold the night for ever."""
    agent = """
        for name in ('progress.txt', 'CLAUDE.md', 'AGENTS.md', 'spec.md', '.ralph-session.json'):
            pathlib.Path(name).unlink(missing_ok=True)
            os.mkfifo(name)
        write(f'src/{STORY}.txt'); done()
    """
    files = {"spec.md": "# A spec"}
    stories = [story(f"US-{n}", parent_spec="spec.md") for n in (1, 2)]
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, files=files)
    config = (box.root / "ralph.toml").read_text().replace("enabled = false", "every = 1")
    (box.root / "ralph.toml").write_text(config)
    box.git("commit", "-qam", "learn")
    done = box.run(timeout=60)
    assert done.code == 0, done.text
    assert "The parent specification cannot be read" in box.prompt(2)


def test_a_reader_of_the_events_that_leaves_does_not_end_the_run(tmp_path: Path) -> None:
    """Whoever follows `--json` or the words may crash at night; the work goes on."""
    box = sandbox(tmp_path, WORKS + "done()", stories=2, checks=GREEN)
    process = box.start("--json")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("{")
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert box.passes() == {"US-1": True, "US-2": True}


def test_a_terminal_that_vanishes_does_not_end_the_run(tmp_path: Path) -> None:
    """A disowned run whose terminal is closed gets no hangup, only errors when it draws."""
    agent = "time.sleep(1); " + WORKS + "done()"
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    screen, terminal = os.openpty()
    process = subprocess.Popen(
        box.argv("run"),
        cwd=box.root,
        env=box.environment({"TERM": "xterm"}),
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    box.wait_for_start(1)
    os.close(screen)
    assert process.wait(timeout=60) == 0
    assert box.passes() == {"US-1": True, "US-2": True}


def test_open_stories_that_an_agent_removed_are_not_done(tmp_path: Path) -> None:
    """A list without its open stories is no finished project, until a person goes on without."""
    agent = """
        data = json.loads(pathlib.Path('prd.json').read_text())
        data['userStories'] = data['userStories'][:1]
        write('prd.json', json.dumps(data))
        write(f'{START}.txt'); done(signal='true')
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run()
    assert done.code == 2, done.text
    assert "US-2 waits for a person: it was removed from the list" in done.text
    starts = box.starts
    again = box.run("--continue")
    assert again.code == 0, again.text
    assert box.starts == starts


def test_a_list_in_the_middle_of_an_edit_is_waited_for(tmp_path: Path) -> None:
    """Saved half done between two starts: the run says so and goes on once it can be read."""
    box = sandbox(tmp_path, WORKS + "done()", stories=2, checks=GREEN)
    process = box.start()
    box.wait_for_start(1)
    box.ralph("pause")
    _wait_until(lambda: box.status()["state"] == "paused")
    whole = (box.root / "prd.json").read_bytes()
    (box.root / "prd.json").write_bytes(whole[:50])
    box.ralph("resume")
    assert process.stdout is not None
    assert any("on hold: prd.json" in line for line in process.stdout)
    (box.root / "prd.json").write_bytes(whole)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert "on hold" not in out
    assert all(box.passes().values())


def test_a_signal_is_not_called_a_person(tmp_path: Path) -> None:
    """An agent that ends every process it can find ends the run; nobody else is blamed for it."""
    agent = "os.kill(os.getppid(), signal.SIGTERM); time.sleep(30)"
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run()
    assert done.code == 143, done.text
    assert "a person" not in done.text
    assert box.status()["run"]["reason"] == "terminated (SIGTERM)"


def test_a_deleted_repository_is_named(tmp_path: Path) -> None:
    """Without .git nothing can be measured or committed: say so, and what to do."""
    agent = WORKS + "subprocess.run(['rm', '-rf', '.git']); done()"
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run()
    assert done.code == 66
    assert "the repository is gone" in done.err
    assert "next:" in done.err


def _wait_until(happened: Callable[[], bool], timeout: float = 20) -> None:
    deadline = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_new_files_that_may_hold_secrets_are_told(tmp_path: Path) -> None:
    """They are named with the story that made them; ordinary files are not."""
    agent = "write('.env' if STORY == 'US-1' else 'settings.py', 'PORT=8080'); done()"
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run()
    assert done.code == 0, done.text
    assert ".env may hold a secret: look at it before you push" in done.text
    assert done.text.count("may hold a secret") == 1
