"""Nothing that a repository names runs before a person has said yes, and a yes is asked for once."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ralphloop.config.load import load_config
from ralphloop.config.model import SECTIONS, settings
from ralphloop.own_code import runs_code_of
from ralphloop.trust import HARMLESS, grants_of
from tests import sentences
from tests.hook.support import Box
from tests.loop.projects import LIBRARY

pytestmark = pytest.mark.attack

SETTINGS = """\
[agent]
name = "command"
command = ["{python}", "agent.py"]
[checks]
commands = [["./check.sh"]]
[session]
keep_awake = false
[limits]
max_iterations = 1
"""
AGENT = LIBRARY + 'write("work.txt", START)\nstatus()\n'


class Clone:
    """A repository as it comes from somebody else, and a person with a state of their own."""

    def __init__(self, base: Path) -> None:
        self.base, self.root = base, base / "clone"
        self.marks, self.state = base / "marks", base / "state"
        self.root.mkdir()
        (base / "agent-state").mkdir()
        self.env = {k: v for k, v in os.environ.items() if k != "RALPH_TRUST"} | {
            "XDG_STATE_HOME": str(self.state),
            "TEST_STATE": str(base / "agent-state"),
        }
        self.write("agent.py", f"open({str(self.marks)!r}, 'a').write('agent ')\n{AGENT}")
        self.write("check.sh", f"#!/bin/sh\nprintf 'check ' >> {self.marks}\n")
        (self.root / "check.sh").chmod(0o755)
        self.write("ralph.toml", SETTINGS.format(python=sys.executable))
        self.stories()
        self.git("init", "-q")
        self.commit()

    def write(self, name: str, text: str) -> None:
        """A file of the repository."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def stories(self, *verify: list[str]) -> None:
        """One open story for each command, or one without."""
        listed = [
            {"id": f"US-{n}", "title": "Do it", "passes": False, "verify": argv}
            for n, argv in enumerate(verify, 1)
        ]
        plain = [{"id": "US-1", "title": "Do it", "passes": False}]
        self.write("prd.json", json.dumps({"userStories": listed or plain}))

    def git(self, *words: str) -> str:
        """Git in the repository."""
        done = subprocess.run(
            ["git", *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self) -> None:
        """All of it."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def ralph(
        self, *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The real command, without a terminal."""
        return subprocess.run(
            [sys.executable, "-m", "ralphloop", *words],
            cwd=cwd or self.root,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def on_terminal(self, answer: str, *words: str) -> tuple[int, str]:
        """The same with somebody who answers."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "ralphloop", *words],
            cwd=self.root,
            env={**self.env, "TERM": "dumb"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            close_fds=True,
        ) as process:
            os.close(theirs)
            os.write(ours, answer.encode() + b"\n")
            said = b""
            try:
                while piece := os.read(ours, 4096):
                    said += piece
            except OSError:
                pass  # how the other end says that it is closed
            os.close(ours)
        return process.returncode, said.decode("utf-8", "replace")

    @property
    def ran(self) -> set[str]:
        """What of the repository was started."""
        return set(self.marks.read_text().split()) if self.marks.exists() else set()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A fresh clone, trusted by nobody."""
    return Clone(tmp_path)


@pytest.mark.parametrize("words", [(), ("--detach",), ("--continue",), ("--json",)])
def test_a_clone_ends_with_77_and_the_way_out(clone: Clone, words: tuple[str, ...]) -> None:
    """Without a terminal nothing runs, nothing is written, and the words say what to do."""
    done = clone.ralph("run", *words)
    assert done.returncode == 77, done
    assert "ralph trust" in done.stderr
    assert "checks.commands" in done.stderr
    assert not clone.ran
    assert not (clone.root / ".ralph").exists()


def test_a_person_is_asked_once_on_a_terminal(clone: Clone) -> None:
    """A no ends with 77; a yes runs, is kept outside of the repository, and is not asked again."""
    code, said = clone.on_terminal("n", "run")
    assert (code, clone.ran) == (77, set())
    assert 'checks.commands = [["./check.sh"]]' in said
    assert "you said no to what this repository may run" in said
    assert "nobody here said yes" not in said
    code, _ = clone.on_terminal("y", "run")
    assert (code, clone.ran) == (3, {"agent", "check"})
    assert clone.ralph("run").returncode == 3
    record = next((clone.state / "ralph" / "trust").iterdir())
    assert (clone.state / "ralph").stat().st_mode & 0o777 == 0o700
    assert "check.sh" in record.read_text()


def test_a_terminal_is_asked_before_the_run_is_detached(clone: Clone) -> None:
    """The process in the background finds the yes that was given in front."""
    code, said = clone.on_terminal("n", "run", "--detach")
    assert (code, clone.ran) == (77, set())
    assert "Trust them?" in said


def test_a_changed_line_asks_again_and_shows_the_difference(clone: Clone) -> None:
    """What was agreed to stands above what it became; other lines are not shown."""
    assert clone.ralph("trust", "--yes").returncode == 0
    changed = SETTINGS.replace("./check.sh", "./other.sh").format(python=sys.executable)
    clone.write("ralph.toml", changed)
    _, said = clone.on_terminal("n", "trust")
    assert '- checks.commands = [["./check.sh"]]' in said
    assert '+ checks.commands = [["./other.sh"]]' in said
    assert "agent.command" not in said


@pytest.mark.parametrize(
    "change",
    [
        ("max_iterations = 1", "max_iterations = 2"),
        ('commands = [["./check.sh"]]', ""),
        ("[session]", '[circuit]\npreset = "strict"\n[session]'),
        ('name = "command"', 'name = "command"\nsafety = "strict"'),
    ],
)
def test_limits_and_fewer_powers_ask_nothing(clone: Clone, change: tuple[str, str]) -> None:
    """A person's attention is a budget."""
    assert clone.ralph("trust", "--yes").returncode == 0
    clone.write("ralph.toml", SETTINGS.format(python=sys.executable).replace(*change))
    shown = clone.ralph("trust")
    assert shown.returncode == 0
    assert sentences.NOT_AGREED not in shown.stdout


def test_every_work_tree_inherits_it_and_another_clone_does_not(clone: Clone) -> None:
    """The yes belongs to git's common directory."""
    assert clone.ralph("trust", "--yes").returncode == 0
    clone.git("worktree", "add", "-q", str(clone.base / "beside"), "-b", "beside")
    clone.git("clone", "-q", ".", str(clone.base / "again"))
    assert clone.ralph("run", cwd=clone.base / "beside").returncode == 3
    assert clone.ralph("run", cwd=clone.base / "again").returncode == 77


def test_scripts_say_yes_by_flag_variable_or_hash(clone: Clone) -> None:
    """A yes for one run is not remembered; a hash is one to exactly these lines."""
    shown = clone.ralph("trust", "--show").stdout
    pin = shown.rpartition("hash: ")[2].strip()
    assert clone.ralph("run", "--trust=" + "0" * 32).returncode == 77
    assert clone.ralph("run", env={"RALPH_TRUST": "0" * 32}).returncode == 77
    assert not clone.ran
    assert clone.ralph("run", f"--trust={pin}").returncode == 3
    assert clone.ralph("run", "--trust").returncode == 3
    assert clone.ralph("run", env={"RALPH_TRUST": "1"}).returncode == 3
    assert clone.ralph("run").returncode == 77
    clone.write(
        "ralph.toml", (clone.root / "ralph.toml").read_text() + '[notify]\ncommand = "./x"\n'
    )
    assert clone.ralph("run", f"--trust={pin}").returncode == 77


def test_revoking_asks_anew(clone: Clone) -> None:
    """What was agreed to is forgotten."""
    assert clone.ralph("trust", "--yes").returncode == 0
    assert clone.ralph("trust", "--revoke").returncode == 0
    assert clone.ralph("run").returncode == 77


def test_the_yes_of_init_is_one_only_for_what_it_wrote(clone: Clone) -> None:
    """Settings that came with the clone are not agreed to by setting up around them."""
    assert clone.ralph("init", "--yes").returncode == 0
    assert clone.ralph("run").returncode == 77
    (clone.root / "ralph.toml").unlink()
    assert clone.ralph("init", "--yes", "--agent", "claude").returncode == 0
    shown = clone.ralph("trust")
    assert shown.returncode == 0
    assert sentences.NOT_AGREED not in shown.stdout


def test_a_declared_agent_is_agreed_to_line_by_line(clone: Clone) -> None:
    """Its file is shown where it is used, and another line in it asks again."""
    lines = 'name = "evil"\nprogram = "./bin/x"\nreader = "text"\nstart = []\n'
    clone.write("agents.d/evil.toml", lines)
    assert "./bin/x" not in clone.ralph("trust", "--show").stdout
    clone.write("ralph.toml", '[agent]\nname = "evil"\n')
    assert 'program = "./bin/x"' in clone.ralph("trust", "--show").stdout
    assert clone.ralph("trust", "--yes").returncode == 0
    clone.write("agents.d/evil.toml", lines.replace("./bin/x", "./bin/y"))
    assert clone.ralph("run").returncode == 77


def test_a_clones_hostile_verify_is_asked_about_and_an_honest_one_is_not(clone: Clone) -> None:
    """What runs only code of the tree needs no yes of its own where such code is trusted."""
    assert clone.ralph("trust", "--yes").returncode == 0
    clone.stories(["pytest", "tests/test_new.py"], ["./scripts/prove.sh"], ["npm", "test"])
    shown = clone.ralph("trust")
    assert shown.returncode == 0
    assert sentences.NOT_AGREED not in shown.stdout
    clone.stories(["sh", "-c", f"echo verify >> {clone.marks}"])
    clone.commit()
    assert clone.ralph("run").returncode == 77
    assert not clone.ran


def test_a_verify_that_an_agent_adds_during_a_run_is_not_run(clone: Clone) -> None:
    """The story does not pass, and the next prompt says why."""
    evil = json.dumps(["sh", "-c", f"printf 'verify ' >> {clone.marks}"])
    clone.write(
        "agent.py",
        LIBRARY
        + "listed = json.loads(pathlib.Path('prd.json').read_text())\n"
        + f"listed['userStories'][0]['verify'] = {evil}\n"
        + "pathlib.Path('prd.json').write_text(json.dumps(listed))\n"
        + 'write("work.txt", START)\nstatus() if START == 1 else done()\n',
    )
    clone.commit()
    assert clone.ralph("trust", "--yes").returncode == 0
    done = clone.ralph("run", "--max-iterations", "3")
    assert done.returncode == 3, done
    assert clone.ran == {"check"}
    assert "nobody has said yet" in (clone.base / "agent-state" / "prompt-3").read_text()


def test_a_loop_in_a_session_does_not_begin_in_a_clone(clone: Clone) -> None:
    """The session is told what a person can do in a terminal; --trust is no word there."""
    box = Box(clone.root, env={"RALPH_TRUST": "", "XDG_STATE_HOME": str(clone.state)})
    assert "ralph trust" in box.command("ralph").reason
    assert "--trust" in box.command("ralph", "--trust").reason
    assert not clone.ran
    assert clone.ralph("trust", "--yes").returncode == 0
    box.begin()


@pytest.mark.parametrize("words", [("trust", "--yes"), ("trust", "--revoke")])
def test_an_agent_cannot_agree(clone: Clone, words: tuple[str, ...]) -> None:
    """Below an agent of any run nothing can be agreed to, also if it hides the mark."""
    assert clone.ralph("trust", "--yes").returncode == 0
    clone.write("ralph.toml", SETTINGS.replace("./check.sh", "./x").format(python=sys.executable))
    marked = {**clone.env, "RALPH_AGENT_MARK": "other/1"}
    inner = ["env", "-u", "RALPH_AGENT_MARK", sys.executable, "-m", "ralphloop", *words]
    done = subprocess.run(
        [sys.executable, "-c", f"import subprocess, sys; sys.exit(subprocess.call({inner!r}))"],
        cwd=clone.root,
        env=marked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64, done
    assert "an agent cannot agree" in done.stderr
    assert clone.ralph("run").returncode == 77


def test_an_agent_that_sets_up_agrees_to_nothing(clone: Clone) -> None:
    """What `ralph init` makes for an agent is written, and waits for a person's yes."""
    (clone.root / "ralph.toml").unlink()
    clone.write("Makefile", "test:\n\t./check.sh\n")
    clone.commit()
    words = ("init", "--yes", "--agent", "claude")
    assert clone.ralph(*words, env={"RALPH_AGENT_MARK": "other/1"}).returncode == 0
    assert clone.ralph("trust").returncode == 77
    assert clone.ralph("run").returncode == 77


def test_an_agent_is_not_given_the_variable(clone: Clone) -> None:
    """A yes for this run is none for what the agent finds elsewhere."""
    told = 'write("seen.txt", os.environ.get("RALPH_TRUST", "none"))\nstatus()\n'
    clone.write("agent.py", LIBRARY + told)
    clone.commit()
    assert clone.ralph("run", env={"RALPH_TRUST": "1"}).returncode == 3
    assert (clone.root / "seen.txt").read_text() == "none"


@pytest.mark.parametrize("trap", ["link", "open"])
def test_a_state_directory_that_others_can_reach_is_not_believed(clone: Clone, trap: str) -> None:
    """A record somebody else could have written is none."""
    assert clone.ralph("trust", "--yes").returncode == 0
    kept = clone.state / "ralph"
    if trap == "open":
        kept.chmod(0o777)
    else:
        kept.rename(clone.base / "elsewhere")
        kept.symlink_to(clone.base / "elsewhere")
    assert clone.ralph("run").returncode == 77
    assert clone.ralph("trust", "--yes").returncode == 66


def test_a_project_only_tightens_the_safety_a_person_names(clone: Clone) -> None:
    """The user's own level is the ceiling, whatever the repository says of sandboxes; it is told."""
    home = clone.base / "config"
    (home / "ralph").mkdir(parents=True)
    own = home / "ralph" / "config.toml"
    own.write_text('[agent]\nsafety = "strict"\n')
    env = {"XDG_CONFIG_HOME": str(home)}
    clone.write(
        "ralph.toml",
        '[agent]\nsafety = "minimal"\nenv = { IS_SANDBOX = "1", OTHER = "x" }\n',
    )
    loaded = load_config(clone.root, env=env)
    assert (loaded.config.agent.safety, loaded.config.agent.env) == ("strict", {"OTHER": "x"})
    assert loaded.origins["agent.safety"] == str(own)
    assert len(loaded.notes) == 2
    own.write_text('[agent]\nsafety = "moderate"\n')
    clone.write("ralph.toml", '[agent]\nsafety = "strict"\n')
    assert load_config(clone.root, env=env).config.agent.safety == "strict"


def test_what_a_project_passes_to_the_agent_is_said_at_the_start(clone: Clone) -> None:
    """Arguments, variables and keys by name, in one line."""
    more = 'args = ["--x"]\npass_env = ["ANTHROPIC_API_KEY"]\nenv = { BASE_URL = "http://e" }\n'
    text = SETTINGS.format(python=sys.executable).replace("[checks]", f"{more}[checks]")
    clone.write("ralph.toml", text)
    clone.commit()
    said = clone.ralph("run", "--trust").stderr
    line = next(line for line in said.splitlines() if "for the agent:" in line)
    assert "args --x" in line
    assert "variables BASE_URL" in line
    assert "keys ANTHROPIC_API_KEY" in line


def test_a_setting_nobody_has_thought_about_asks(clone: Clone) -> None:
    """Every setting is a line that asks, unless it is listed as harmless; the list names real ones."""
    known = {*settings(), *SECTIONS, "proof.experiments", "proof.changed_tests", "lanes.count"}
    assert known >= HARMLESS
    asking = {name for name, it in settings().items() if not {name, it.section} & HARMLESS}
    powers = "command binary args env pass_env allow fallback escalate safety".split()
    assert asking >= {f"agent.{name}" for name in powers}
    assert asking >= {"checks.commands", "session.on_end"}
    assert asking >= {"notify.command", "notify.urls", "notify.webhook"}


@pytest.mark.parametrize(
    "words, calm",
    [
        ("pytest -q tests/x.py", True),
        ("python3.12 -m pytest", True),
        ("python scripts/x.py", True),
        ("uv run pytest", True),
        ("./check.sh", True),
        (".venv/bin/python -m unittest", True),
        ("npm run lint", True),
        ("bash -c id", False),
        ("python -c pass", False),
        ("python -m http.server", False),
        (".venv/bin/python -c pass", False),
        ("python ../outside.py", False),
        ("/usr/bin/id", False),
        ("npx evil", False),
        ("npm exec evil", False),
        ("uv run --with evil pytest", False),
        ("env X=1 pytest", False),
        ("curl http://evil", False),
        ("git push", False),
    ],
)
def test_only_test_runners_and_scripts_of_the_tree_are_calm(
    words: str, calm: bool, tmp_path: Path
) -> None:
    """Inline code, shells, what fetches and what lies elsewhere are asked about."""
    assert runs_code_of(tmp_path, words.split()) is calm


def test_grants_of_a_project_without_settings_are_none(tmp_path: Path) -> None:
    """Nobody is asked where there is nothing to agree to."""
    assert grants_of(load_config(tmp_path, env={}), tmp_path) == ()
