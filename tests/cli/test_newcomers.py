"""What newcomers type, and the right word back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ralphloop import __version__
from tests.conftest import RunRalph
from tests.loop.projects import sandbox

WORKS = "write(f'{STORY}.txt'); done()"


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("start", "run"),
        ("go", "run"),
        ("continue", "run --continue"),
        ("cancel", "stop"),
        ("add", "stories add"),
        ("upgrade", ""),
        ("statsu", "stats"),
    ],
)
def test_a_word_of_other_tools_is_answered_with_ours(
    typed: str, meant: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Nothing is started on a guess: the command is named, with 64."""
    done = run_ralph(typed, cwd=tmp_path)
    assert done.returncode == 64
    wanted = f"Did you mean `ralph {meant}`" if meant else "ralph --help"
    assert wanted in done.stderr


@pytest.mark.parametrize(
    "typed, ours",
    [
        ("list", "stories"),
        ("ls", "stories"),
        ("logs", "log"),
        ("watch", "monitor"),
        ("tui", "monitor"),
        ("accept", "review"),
        ("approve", "review"),
    ],
)
def test_a_word_of_other_tools_that_only_looks_is_done(
    typed: str, ours: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Nothing is spent by it, so nobody has to type it twice."""
    done = run_ralph(typed, cwd=tmp_path)
    same = run_ralph(ours, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (
        same.returncode,
        same.stdout,
        same.stderr,
    )
    assert "there is no command" not in done.stderr


@pytest.mark.parametrize(
    "words", [("learn",), ("learn", "--aggregate"), ("--aggregate",), ("learnings", "update")]
)
def test_learn_goes_on_working_as_a_part_of_learnings(
    words: tuple[str, ...], tmp_path: Path, run_ralph: RunRalph
) -> None:
    """By every name it ever had."""
    done = run_ralph(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "0 learnings, 0 patterns, 0 to publish",
    )


@pytest.mark.parametrize("words", [("help",), ("--help",), ("-h",)])
def test_help_is_help(words: tuple[str, ...], tmp_path: Path, run_ralph: RunRalph) -> None:
    """However it is asked for."""
    done = run_ralph(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert "Set up" in done.stdout


def test_help_of_a_command_is_that_commands(tmp_path: Path, run_ralph: RunRalph) -> None:
    """As git, cargo and go take it."""
    assert run_ralph("help", "run", cwd=tmp_path).stdout == (
        run_ralph("run", "--help", cwd=tmp_path).stdout
    )
    added = run_ralph("help", "stories", "add", cwd=tmp_path)
    assert "--criterion" in added.stdout


@pytest.mark.parametrize("word", ["version", "-v", "-V", "--version"])
def test_the_version_is_told(word: str, tmp_path: Path, run_ralph: RunRalph) -> None:
    """By every name it has elsewhere."""
    done = run_ralph(word, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"ralph {__version__}\n")


def test_a_story_is_known_in_any_case(tmp_path: Path) -> None:
    """`us-2` is US-2, unless two differ by nothing else."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=[["true"]])
    done = box.run("--story", "us-2")
    assert done.code in (0, 4), done.text
    assert box.passes() == {"US-1": False, "US-2": True}
    assert box.run("--story", "us-9").code == 65


def test_a_repository_without_a_commit_is_told_to_make_one(tmp_path: Path) -> None:
    """A stash is impossible there."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    box.git("update-ref", "-d", "HEAD")
    done = box.run()
    assert done.code == 66, done.text
    assert "there is no commit yet" in done.err
    assert "git add -A && git commit" in done.err
    assert "stash" not in done.err


def project(root: Path, listed: object = None, settings: str = "") -> Path:
    """A directory with a story list, which one may get wrong."""
    story = {"id": "US-001", "title": "One", "acceptanceCriteria": ["it works"]}
    (root / "prd.json").write_text(json.dumps(listed or {"userStories": [story]}))
    if settings:
        (root / "ralph.toml").write_text(settings)
    return root


ONE = {"id": "US-001", "title": "One", "acceptanceCriteria": ["it works"]}


@pytest.mark.parametrize(
    "listed, words",
    [
        ({"userStorys": [ONE]}, 'did you mean that by "userStorys"?'),
        ({"Stories": [ONE]}, 'did you mean that by "Stories"?'),
        (
            {"userStories": [{"id": "A", "titel": "x"}]},
            'title: missing; did you mean that by "titel"?',
        ),
        ({"userStories": []}, "ralph stories add"),
        ({"userStories": [{**ONE, "dependsOn": ["US-002"]}]}, 'no story has the id "US-002"\n'),
    ],
)
def test_a_slip_in_the_story_list_is_named(
    listed: object, words: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """With the key that was found, and never with the story itself as the one it waits for."""
    for command in ("run", "stories"):
        done = run_ralph(command, cwd=project(tmp_path, listed))
        assert done.returncode == 65
        assert words in done.stderr


@pytest.mark.parametrize(
    "line, words",
    [
        ("name = command", '; text stands in quotes: name = "…"'),
        ("name = claude # mine", '; text stands in quotes: name = "…"'),
        ("name = [", ""),
        ('name = "claude', ""),
    ],
)
def test_text_without_quotes_is_told_of_quotes(
    line: str, words: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """TOML's own parser says no more than that a value is invalid."""
    done = run_ralph("run", cwd=project(tmp_path, settings=f"[agent]\n{line}\n"))
    assert done.returncode == 65
    assert "is not valid TOML" in done.stderr
    assert words in done.stderr
    assert ("quotes" in done.stderr) is bool(words)


@pytest.mark.parametrize("typed", ["7am", "7 AM", "07:00", "7:00am", "7a.m."])
def test_a_time_of_day_is_taken_as_people_write_it(
    typed: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """In the morning as by the clock."""
    done = run_ralph("run", "--until", typed, "--dry-run", cwd=project(tmp_path))
    assert done.returncode == 0, done.stderr


def test_what_is_no_time_of_day_is_told_what_one_is(tmp_path: Path, run_ralph: RunRalph) -> None:
    """With both ways to write it."""
    done = run_ralph("run", "--until", "tomorrow", cwd=project(tmp_path))
    assert done.returncode == 64
    assert 'such as "07:00" or "7am"' in done.stderr


@pytest.mark.parametrize("words", [("run",), ("do", "x", "--verify", "true"), ("init", "--yes")])
def test_an_agent_nobody_knows_leads_to_the_list_and_the_guide(
    words: tuple[str, ...], tmp_path: Path, run_ralph: RunRalph
) -> None:
    """`ralph docs agents` tells how to add one."""
    done = run_ralph(*words, "--agent", "cursor", cwd=project(tmp_path))
    assert done.returncode == 64
    assert "claude" in done.stderr
    assert "`ralph docs agents`" in done.stderr
    assert not (tmp_path / "ralph.toml").exists()


def test_without_git_that_is_said_first(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Before an agent that is missing, too, or not logged in."""
    done = run_ralph("run", cwd=project(tmp_path), env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 69, done.stderr
    first = done.stderr.splitlines()[0]
    assert "no git repository here" in first
    assert "git init" in first


def test_where_there_is_no_git_nothing_leads_to_it(tmp_path: Path) -> None:
    """A run without a repository ends with the report as what to read."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    subprocess.run(["rm", "-rf", ".git"], cwd=box.root, check=True)
    done = box.run()
    assert "git log" not in done.text
    assert "ralph report" in done.err


@pytest.mark.parametrize("words", [("--continue",), ("--continue", "--detach")])
def test_going_on_with_nothing_spends_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    """A new night is begun by `ralph run` alone."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    done = box.run(*words)
    assert done.code == 64, done.text
    assert "there is no run to continue" in done.err
    assert "`ralph run` starts one" in done.err
    assert box.starts == 0
    assert box.run().code == 0
    assert box.ralph("stories", "add", "One more").code == 0
    again = box.run(*words)
    assert again.code == 64, again.text
    assert "nothing to continue: the run finished" in again.err
    assert "`ralph run` begins a new one" in again.err
    assert box.starts == 1


@pytest.mark.parametrize("command", ["report", "review", "log", "pause", "resume", "replay", "pr"])
def test_before_the_first_run_one_sentence_says_so(
    command: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The same for everybody who asks, with the same exit code."""
    done = run_ralph(command, cwd=project(tmp_path))
    assert (done.returncode, done.stdout) == (64, "")
    assert "nothing has run here yet" in done.stderr
    assert "`ralph run` starts one" in done.stderr


@pytest.mark.parametrize(
    "settings, words",
    [
        ("[agent]\nname = command\n", 'text stands in quotes: name = "…"'),
        ("[limits]\nmax_iteration = 3\n", "did you mean max_iterations?"),
        ("[chekcs]\n", "did you mean checks?"),
    ],
)
def test_a_mistake_in_the_settings_is_said_by_status_and_run(
    settings: str, words: str, tmp_path: Path
) -> None:
    """Who looks before they start sees why it would not."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    assert "\nsettings " not in box.ralph("status").out
    (box.root / "ralph.toml").write_text(settings)
    shown = box.ralph("status")
    assert shown.code == 0, shown.text
    told = " ".join(shown.out.split())
    assert "\nsettings " in shown.out
    assert "ralph.toml: " in told
    assert words in told
    assert "`ralph config validate` lists everything" in told
    done = box.run()
    assert done.code == 65, done.text
    assert words in done.err


@pytest.mark.parametrize("name", [".ralph/fix_plan.md", "fix_plan.md", "docs/plans", "openspec"])
def test_a_list_of_another_tool_is_seen(name: str, tmp_path: Path, run_ralph: RunRalph) -> None:
    """`run` and `init` say how it becomes stories; for `init` that is the first step."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix:
        path.write_text("- [ ] Add a parser\n")
    else:
        path.mkdir()
    done = run_ralph("run", cwd=tmp_path)
    assert (done.returncode, f"`ralph plan {name}`" in done.stderr) == (65, True), done.stderr
    done = run_ralph("init", "--yes", "--no-run", cwd=tmp_path)
    assert f"1. ralph plan {name}  makes stories of the list that is there" in done.stdout


@pytest.mark.parametrize("text", ['{"userStories": [{"id": "US-1", "passes": false}]}', "{"])
def test_a_list_with_a_mistake_is_to_be_corrected(
    text: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Nobody is told to set up a directory that is, nor twice how to name another list."""
    (tmp_path / "prd.json").write_text(text)
    shown = run_ralph("status", cwd=tmp_path).stdout
    assert "Correct prd.json" in shown
    assert "ralph stories add" in shown
    assert "ralph init" not in shown
    assert "Correct it" in run_ralph("stories", cwd=tmp_path).stderr


def test_an_empty_list_is_not_to_be_corrected(tmp_path: Path, run_ralph: RunRalph) -> None:
    """It lacks a story, and nothing in it is wrong."""
    (tmp_path / "prd.json").write_text('{"userStories": []}')
    shown = run_ralph("status", cwd=tmp_path).stdout
    assert "ralph stories add" in shown
    assert "Correct" not in shown


def test_a_wrong_directory_is_named_with_the_way_out(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Where it looked, and that one may be elsewhere; a list needs no plain loop."""
    for words in (("run",), ("stories",), ("stories", "add", "x")):
        done = run_ralph(*words, cwd=tmp_path)
        assert done.returncode == 65
        assert f"no prd.json or tasks.yaml in {tmp_path}" in done.stderr
        assert "`cd` there" in done.stderr
        assert ("--prompt" in done.stderr) is (words == ("run",))


def test_a_story_is_steered_in_any_case(tmp_path: Path) -> None:
    """`ralph skip us-2` and `ralph reject us-1` know which is meant."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=[["true"]])
    assert box.run("--max-iterations", "1").code == 3
    assert "US-2" in box.ralph("skip", "us-2").text
    rejected = box.ralph("reject", "us-1", "Not yet")
    assert rejected.code == 0, rejected.text
    assert box.passes()["US-1"] is False


def answers(root: Path, run_ralph: RunRalph, line: str) -> list[str]:
    """What a shell would offer for the last word of a line."""
    asked = {
        "_RALPH_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    done = run_ralph(cwd=root, env=asked)
    assert done.returncode == 0, done.stderr
    return [offer.partition(",")[2] for offer in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "line, offered",
    [
        ("ralph config ", ["show", "validate"]),
        ("ralph learnings up", ["update"]),
        ("ralph circuit re", ["reset"]),
        ("ralph lanes cl", ["clean"]),
        ("ralph run --story us", ["US-001"]),
        ("ralph skip US", ["US-001"]),
        ("ralph stories edit U", ["US-001"]),
        ("ralph run --agent cla", ["claude"]),
        ("ralph docs first", ["first-night"]),
        ("ralph docs guides/first", ["guides/first-night"]),
        ("ralphloop stat", ["stats", "status"]),
    ],
)
def test_a_shell_offers_what_can_follow(
    line: str, offered: list[str], tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Sub-commands, stories, agents and pages."""
    assert answers(project(tmp_path), run_ralph, line) == offered


def test_a_shell_offers_runs(tmp_path: Path, run_ralph: RunRalph) -> None:
    """By their ids, which nobody types."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    box.run()
    offered = answers(box.root, run_ralph, "ralph report 2")
    assert len(offered) == 1
    assert answers(box.root, run_ralph, "ralph log --run 2") == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_both_names_of_the_program_are_completed(
    shell: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """`ralphloop` as well as `ralph`; in zsh also where nothing has loaded its completion."""
    script = run_ralph("completion", shell, cwd=tmp_path).stdout
    assert "_ralph_completion" in script
    assert "_ralphloop_completion" in script
    if shell == "zsh":
        assert script.index("compinit") < script.index("compdef _ralph_completion ralph")


def test_bash_completes_both_names(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The script is read by the real shell."""
    script = run_ralph("completion", "bash", cwd=tmp_path).stdout
    done = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p ralph ralphloop"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("_completion ralph") == 2
