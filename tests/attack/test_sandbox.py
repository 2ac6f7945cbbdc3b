"""An agent, a check and a hook of git try to leave the sandbox; honest work inside is not disturbed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralphloop.proc.run import ourselves
from tests.tools import is_there

pytestmark = [pytest.mark.attack, pytest.mark.tool("bwrap", optional=True)]
WAYS_OUT = Path(__file__).with_name("ways_out")
SYSTEM_PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
BLOCK = """
---RALPH_STATUS---
STATUS: COMPLETE
TASKS_COMPLETED_THIS_LOOP: 1
FILES_MODIFIED: 1
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: true
RECOMMENDATION: none
---END_RALPH_STATUS---"""
HOME_FILES = (
    ".ssh/id_rsa .aws/credentials .config/gh/hosts.yml .gnupg/secring .mozilla/firefox/logins.json"
    " .local/state/ralph/trust .git-credentials .bash_history .bashrc .profile .claude/settings.json"
).split()


@dataclass
class World:
    """A machine in small: a home with secrets, a project, another one beside it."""

    place: Path
    env: dict[str, str]

    @property
    def root(self) -> Path:
        """The project."""
        return self.place / "code" / "mine"

    @property
    def home(self) -> Path:
        """The person's home."""
        return self.place / "home"

    def project(self, agent: str, *, settings: str = "", verify: tuple[str, ...] = ()) -> None:
        """One story, and an agent that is a shell script."""
        (self.root / "agent.sh").write_text(
            f"#!/bin/sh\ncat >/dev/null\n{agent}\ncat <<E{BLOCK}\nE\n"
        )
        (self.root / "agent.sh").chmod(0o755)
        story = {"id": "US-1", "title": "t", "acceptanceCriteria": ["x"], "passes": False}
        if verify:
            story["verify"] = list(verify)
        (self.root / "prd.json").write_text(json.dumps({"userStories": [story]}))
        (self.root / "ralph.toml").write_text(
            '[agent]\nname = "command"\ncommand = ["./agent.sh"]\n'
            '[checks]\ncommands = [["sh", "check.sh"]]\n[session]\nkeep_awake = false\n'
            f"[learning]\nenabled = false\n{settings}"
        )
        if not (self.root / "check.sh").exists():
            (self.root / "check.sh").write_text("true\n")
        (self.root / ".gitignore").write_text(".ralph*\nfound-*\nplaces.json\n*-PWNED\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "-m", "start")

    def git(self, *words: str) -> str:
        """Git in the project."""
        done = subprocess.run(
            ["git", *words], cwd=self.root, env=self.env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def ralph(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The real command in the project."""
        return subprocess.run(
            [*ourselves(), *words],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def found(self, who: str) -> dict[str, str]:
        """What those inside say of each way out."""
        found: dict[str, str] = json.loads((self.root / f"found-{who}.json").read_text())
        return found

    def marks(self) -> list[str]:
        """What an attack left where nobody but the person may write."""
        outside = [*self.home.rglob("*PWNED*"), *(self.place / "code" / "other").rglob("*PWNED*")]
        changed = [self.home / name for name in HOME_FILES]
        said = [path for path in changed if "PWNED" in path.read_text()]
        return [str(path) for path in (*outside, *said)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Secrets, a socket, a port and a process of the host, and two projects."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "ANTHROPIC_API_KEY": "WITHHELD-KEY",
        "RALPH_TRUST": "1",  # the settings are the test's own
        "LANG": "C.UTF-8",
    }
    world = World(tmp_path, env)
    for name in HOME_FILES:
        (world.home / name).parent.mkdir(parents=True, exist_ok=True)
        (world.home / name).write_text("SECRET\n")
    for name in ("mine", "other"):
        place = tmp_path / "code" / name
        place.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(place)], env=env, check=True)
    (tmp_path / "code/other/secret.txt").write_text("SECRET\n")
    for key, value in {"user.name": "n", "user.email": "n@example.com"}.items():
        world.git("config", key, value)
    (tmp_path / "host").mkdir()
    (tmp_path / "host/secret.txt").write_text("SECRET\n")
    shutil.copy(WAYS_OUT, world.root)
    sleeper = subprocess.Popen(
        [sys.executable, "-S", "-c", IGNORANT, "ralph-host-process"],
    )
    with socket.socket(socket.AF_UNIX) as unix, socket.socket() as port:
        os.chdir(tmp_path / "host")  # a socket's path is short
        unix.bind("host.sock")
        unix.listen()
        port.bind(("127.0.0.1", 0))
        port.listen()
        places = {
            "home": str(world.home),
            "other": str(tmp_path / "code/other"),
            "host": str(tmp_path / "host"),
            "pid": sleeper.pid,
            "port": port.getsockname()[1],
        }
        (world.root / "places.json").write_text(json.dumps(places))
        yield world
    assert sleeper.poll() is None, "a process of the host was killed"
    sleeper.kill()
    sleeper.wait()


IGNORANT = "import signal, time; signal.signal(signal.SIGUSR1, signal.SIG_IGN); time.sleep(600)"
ON = '[sandbox]\nmode = "on"\nnetwork = "none"\n'


def refused(world: World) -> bool:
    """On a machine without a sandbox: a run that needs one does not begin, and says why."""
    if is_there("bwrap"):
        return False
    done = world.ralph("run")
    assert done.returncode == 66
    assert "needs a sandbox, and none works here" in done.stderr
    return True


def rows(record_property: Callable[[str, object], None], found: dict[str, str], who: str) -> None:
    """Lines for the table of `make attack`."""
    for name, happened in found.items():
        record_property("attack", [f"{who}: {name}", "held", happened])


def test_an_agent_finds_no_way_out(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    """Forty ways out, tried by an agent: none leads anywhere, and its story passes all the same."""
    world.project(f"{SYSTEM_PYTHON} ways_out agent\necho done > work.txt", settings=ON)
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confined: the agent, the checks and git's hooks" in done.stderr
    found = world.found("agent")
    found.pop("read a withheld key from a process")  # a command of the user's own gets their keys
    rows(record_property, found, "agent")
    assert len(found) >= 35
    assert [name for name, happened in found.items() if happened != "held"] == []
    assert world.marks() == []
    time.sleep(2.6)
    assert not (world.root / "daemon-agent-PWNED").exists()
    assert world.git("log", "-1", "--format=%s") == "US-1: t"


def test_a_check_finds_no_way_out(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    """What an agent wrote into a check is confined like the agent, and gets no key."""
    (world.root / "check.sh").write_text("true\n")
    attack = f"{SYSTEM_PYTHON} ways_out check; test -e work.txt"
    world.project(f"echo '{attack}' > check.sh\necho done > work.txt", settings=ON)
    if refused(world):
        return
    # In place: in the clean tree there is nothing of the project to attack.
    world.env["RALPH_PROOF_CLEAN_TREE"] = "off"
    world.ralph("run")
    found = world.found("check")
    rows(record_property, found, "check")
    assert [name for name, happened in found.items() if happened != "held"] == []
    assert world.marks() == []


def test_a_hook_in_the_tree_finds_no_way_out(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    """A hook that an agent wrote (husky) runs confined, and what it planted in .git is gone."""
    hook = f"#!/bin/sh\\n{SYSTEM_PYTHON} ways_out hook\\n"
    agent = f"mkdir -p .husky; printf '{hook}' > .husky/pre-commit; chmod +x .husky/pre-commit"
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    world.git("config", "core.hooksPath", ".husky")
    if refused(world):
        return
    before = (world.root / ".git/config").read_text()
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    found = world.found("hook")
    rows(record_property, found, "hook")
    assert [name for name, happened in found.items() if happened != "held"] == []
    assert world.marks() == []
    assert (world.root / ".git/config").read_text() == before
    assert not (world.root / ".git/commondir").exists()
    assert not (world.root / ".git/hooks/post-checkout").exists()


def test_trust_records_are_hidden_where_they_are(world: World) -> None:
    """A relative XDG_STATE_HOME is not obeyed, so the records lie in the home, and are hidden there."""
    world.env["XDG_STATE_HOME"] = "state"
    world.project("cat ~/.local/state/ralph/trust > seen.txt\necho done > work.txt", settings=ON)
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (world.root / "seen.txt").read_text() == ""


def test_without_a_sandbox_the_ways_are_open(world: World) -> None:
    """The same agent without a sandbox gets out where it tries: the attacks are real."""
    harmless = "read see connect link 'write to .bashrc' 'write to another' 'write a new'"
    world.project(f"{SYSTEM_PYTHON} ways_out agent {harmless}\necho done > work.txt")
    done = world.ralph("run")
    assert "No sandbox: the agent, the checks and git's hooks can read and change" in done.stderr
    out = [name for name, happened in world.found("agent").items() if happened == "worked"]
    assert len(out) >= 14
    assert world.marks() != []


def test_strict_needs_a_sandbox_for_any_agent(world: World) -> None:
    """`safety = "strict"` with a command of the user's own is confined, or refused with 66."""
    strict = '[agent]\nsafety = "strict"\n'
    world.project("echo x > /etc/PWNED; echo done > work.txt")
    text = (world.root / "ralph.toml").read_text().replace("[agent]\n", strict)
    (world.root / "ralph.toml").write_text(text)
    world.git("commit", "-qam", "strict")
    hidden = {**world.env, "PATH": str(world.place / "bin")}
    (world.place / "bin").mkdir()
    for name in ("git", "sh", "cat", "true"):
        (world.place / "bin" / name).symlink_to(shutil.which(name) or name)
    there, world.env = world.env, hidden
    done = world.ralph("run")
    assert done.returncode == 66
    assert (
        'safety = "strict" needs a sandbox, and none works here: bubblewrap is not' in done.stderr
    )
    world.env = there
    if not is_there("bwrap"):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stderr
    assert "confined: the agent" in done.stderr
    assert not Path("/etc/PWNED").exists()


def test_auto_runs_without_one_and_says_so(world: World) -> None:
    """`mode = "auto"` where there is no sandbox: one line says so, and the run goes on."""
    world.project("echo done > work.txt", settings='[sandbox]\nmode = "auto"\n')
    (world.place / "bin").mkdir()
    for name in ("git", "sh", "cat", "true"):
        (world.place / "bin" / name).symlink_to(shutil.which(name) or name)
    world.env = {**world.env, "PATH": str(world.place / "bin")}
    done = world.ralph("run")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("No sandbox:") == 1
    assert "bubblewrap is not installed" in done.stderr


def test_what_was_refused_is_named_with_the_line_that_allows_it(world: World) -> None:
    """A check that wants its cache fails with the setting that would let it; with it, it passes."""
    cache = world.home / ".cache/tool"
    world.project("echo done > work.txt", settings=ON)
    if refused(world):
        return
    cache.mkdir(parents=True)
    (world.root / "check.sh").write_text(f"echo x > {cache}/index\n")
    world.git("commit", "-qam", "a check with a cache")
    done = world.ralph("run")
    assert done.returncode == 66
    assert f'[sandbox] write = ["{cache}"]' in done.stderr
    text = (world.root / "ralph.toml").read_text()
    (world.root / "ralph.toml").write_text(f'{text}write = ["~/.cache/tool"]\n')
    world.git("commit", "-qam", "allow it")
    assert world.ralph("run").returncode == 0
    assert (cache / "index").exists()


def test_one_port_can_be_reached_and_no_other(world: World) -> None:
    """With a list of addresses those are reached by a relay, others are not there."""
    port = json.loads((world.root / "places.json").read_text())["port"]
    probe = (
        "import socket\n"
        f"socket.create_connection(('127.0.0.1', {port}), 5).close()\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9), 2)\nexcept OSError:\n"
        "    open('work.txt', 'w').write('only the one')\n"
    )
    (world.root / "probe.py").write_text(probe)
    network = f'[sandbox]\nmode = "on"\nnetwork = ["127.0.0.1:{port}"]\n'
    world.project(f"{SYSTEM_PYTHON} probe.py", settings=network)
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (world.root / "work.txt").read_text() == "only the one"
    assert f"network: 127.0.0.1:{port}" in done.stderr


def test_an_agent_that_is_stopped_may_still_say_something(world: World) -> None:
    """SIGINT reaches what is inside and not the box; its own exit code comes through."""
    agent = "trap 'echo asked > asked.txt; exit 3' INT; for i in $(seq 300); do sleep 0.1; done"
    world.project(agent, settings=f'{ON}[limits]\niteration_timeout = "2s"\nmax_iterations = 1\n')
    if refused(world):
        return
    world.ralph("run")
    assert (world.root / "asked.txt").read_text() == "asked\n"


def test_the_agent_is_told_that_ralph_commits(world: World) -> None:
    """Where .git is read-only the prompt says so."""
    world.project("echo done > work.txt", settings=ON)
    if refused(world):
        return
    assert world.ralph("run").returncode == 0
    prompt = next((world.root / ".ralph/transcripts").glob("*/1.prompt.md")).read_text()
    assert "`.git` is\nread-only: do not try to commit" in prompt


def test_a_project_below_the_root_cannot_be_moved_aside(world: World) -> None:
    """The directories above a guarded place cannot be renamed, to put a forged one there."""
    world.project("exit 1")
    below = world.root / "packages" / "app"
    below.mkdir(parents=True)
    agent = "mv ../../packages ../../away; mv ../app ../away; echo done > work.txt"
    for name in ("agent.sh", "prd.json", "ralph.toml", "check.sh"):
        shutil.move(world.root / name, below / name)
    (below / "agent.sh").write_text(f"#!/bin/sh\ncat >/dev/null\n{agent}\ncat <<E{BLOCK}\nE\n")
    text = (below / "ralph.toml").read_text()
    (below / "ralph.toml").write_text(text + ON)
    world.git("add", "--all")
    world.git("commit", "-qm", "below")
    if not is_there("bwrap"):
        return
    done = subprocess.run(
        [*ourselves(), "run"], cwd=below, env=world.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (below / ".ralph/journal.db").exists()
    assert not (world.root / "away").exists()
    assert not (world.root / "packages/away").exists()


def test_a_secret_in_a_story_is_not_published(world: World) -> None:
    """Commit subject, kept prompt and progress.txt do not repeat it."""
    token = "ghp_" + "1a2B3c4D5e6F7g8H9i0JkLmNoPqRsTuVwXyZ"
    world.project("echo done > work.txt")
    text = (world.root / "prd.json").read_text().replace('"t"', f'"Use {token} for the API"')
    (world.root / "prd.json").write_text(text)
    world.git("commit", "-qam", "a story with a secret")
    assert world.ralph("run").returncode == 0
    prompt = next((world.root / ".ralph/transcripts").glob("*/1.prompt.md")).read_text()
    progress = (world.root / "progress.txt").read_text()
    for kept in (world.git("log", "-1", "--format=%B"), prompt, progress):
        assert "Use [redacted] for the API" in kept
        assert token not in kept


def test_commits_are_signed_outside_after_the_hooks_ran_inside(world: World) -> None:
    """The key is out of reach of hooks, and the commit is signed all the same."""
    world.project("echo done > work.txt", settings=ON)
    hook = world.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ncat ~/.ssh/id_rsa > seen.txt 2>/dev/null; exit 0\n")
    hook.chmod(0o755)
    signer = world.place / "signer"
    signer.write_text(
        "#!/bin/sh\ncat >/dev/null\ngrep -q SECRET ~/.ssh/id_rsa || exit 1\n"
        "echo '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    signer.chmod(0o755)
    world.git("config", "gpg.program", str(signer))
    world.git("config", "commit.gpgSign", "true")
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BEGIN PGP SIGNATURE" in world.git("cat-file", "-p", "HEAD")
    assert world.git("log", "-1", "--format=%s") == "US-1: t"
    assert "SECRET" not in (world.root / "seen.txt").read_text()


def test_an_agent_may_commit_where_git_is_guarded(world: World) -> None:
    """With `git = "guarded"` it commits, and hooks, configuration and `commondir` still hold."""
    agent = (
        "echo done > work.txt; git add work.txt; git commit -qm 'by the agent'\n"
        "echo x >> .git/config; echo x > .git/hooks/post-checkout; echo ../x > .git/commondir"
    )
    world.project(agent, settings=f'{ON}git = "guarded"\n')
    (world.root / ".git/hooks").mkdir(exist_ok=True)
    before = (world.root / ".git/config").read_text()
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "by the agent" in world.git("log", "--format=%s")
    assert (world.root / ".git/config").read_text() == before
    assert not (world.root / ".git/commondir").exists()
    assert not (world.root / ".git/hooks/post-checkout").exists()


def test_a_linked_work_tree_can_be_worked_in(world: World) -> None:
    """Git's directory lies elsewhere then; it is read-only all the same, and ralph commits."""
    world.project("echo done > work.txt; echo x >> ../mine/.git/config", settings=ON)
    world.git("worktree", "add", "-q", "-b", "side", "../side")
    before = (world.root / ".git/config").read_text()
    if not is_there("bwrap"):
        return
    side = world.place / "code" / "side"
    done = subprocess.run(
        [*ourselves(), "run"], cwd=side, env=world.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert world.git("log", "-1", "--format=%s", "side") == "US-1: t"
    assert (world.root / ".git/config").read_text() == before
