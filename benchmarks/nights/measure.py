"""One night with one supervisor: run it, then ask the hidden tests what it is worth."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.nights.actor import START_HEADER, START_LOG, Actor
from benchmarks.nights.live import Relay
from benchmarks.nights.nights import Night
from benchmarks.nights.shop import lay_out, truly_done
from benchmarks.nights.supervisors import Supervisor
from tests.e2e.clis import CLIS, claude_env
from tests.e2e.model_server import ModelServer, Prices, Usage

# Dollars per million tokens of the model that the CLI asks for, at list price.
PRICES = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
_LOOK_EVERY_S = 0.1
_TO_END_S = 10.0
_LAST_LINES = 3

# Each start of the agent gets a number, which the model is told, and leaves its process id.
_STAND_IN = """\
#!/bin/bash
case " $* " in *" -p "*|*" --print "*|*" -p")
  exec 9>>{lock}; flock 9
  n=$(( $(wc -l < {log} 2>/dev/null || echo 0) + 1 ))
  echo "$n $$ $(date +%s.%N)" >> {log}
  exec 9>&-
  export ANTHROPIC_CUSTOM_HEADERS="{header}: $n" ;;
esac
exec {program} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one night with one supervisor was worth."""

    night: str
    supervisor: str
    truly_done: int
    called_done: int
    falsely_done: int  # called done, and the hidden tests say no
    proven_falsely: int | None  # of these, called proven; None: it knows no such word
    missed: int  # truly done, and not called done
    work_lost: int  # done honestly in some start, and not there at the end
    starts: int
    tokens: int
    tokens_wasted: int | None  # in starts that left no story truly done; None: not known
    dollars: float
    wall_s: float
    known_after_s: float | None  # from the first misbehaviour to its end; None: nobody was told
    ended: str  # by itself, cut off
    exit_code: int | None
    left_running: int  # processes of the night that were there when it had ended
    last_words: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A real model instead of the script: whose key, at which address, for how much at most."""

    key: str
    upstream: str = ""  # empty: the script, to try the relay without spending anything
    budget_usd: float = 1.0


def measure(
    supervisor: Supervisor, night: Night, keep: Path | None = None, live: Live | None = None
) -> Result:
    """Run a night to its end or its limit; what it leaves is copied to `keep`, to look at."""
    with tempfile.TemporaryDirectory(prefix="night-", ignore_cleanup_errors=True) as scratch:
        result = _measure(supervisor, night, Path(scratch).resolve(), live)
        if keep is not None:
            place = keep / f"{supervisor.name} {night.name}".replace("/", "-").replace(" ", "-")
            # Not its home: sockets of the CLI lie there, which cannot be copied.
            shutil.copytree(Path(scratch, "shop"), place, symlinks=True, dirs_exist_ok=True)
            shutil.copy(Path(scratch, "output.txt"), place / "output-of-the-night.txt")
        return result


def _measure(supervisor: Supervisor, night: Night, scratch: Path, live: Live | None) -> Result:
    root = scratch / "shop"
    home = scratch / "home"
    root.mkdir()
    home.mkdir()
    actor = Actor(root, night.behaviour, night.trouble)
    actor.kill_at = night.kill_supervisor_at
    _git(root, home, "init", "-q", "-b", "main")
    lay_out(root)
    supervisor.prepare(root, night)
    _git(root, home, "add", "-A")
    _git(root, home, "commit", "-qm", "Begin")
    output = scratch / "output.txt"
    with ExitStack() as stack:
        server = stack.enter_context(ModelServer(root=root, stage=actor))
        env = _environment(scratch, server.url, night, supervisor)
        relay = None
        if live is not None:
            upstream = live.upstream or server.url
            relay = stack.enter_context(Relay(upstream, live.budget_usd, PRICES))
            env |= {"ANTHROPIC_BASE_URL": relay.url, "ANTHROPIC_API_KEY": live.key}
        run = _Run(supervisor, night, root, env, output)
        ending = run.to_the_end(actor)
        left = run.end_everything(home)
    billed = actor.bill() if relay is None else relay.billed
    said = output.read_text(errors="replace").strip().splitlines() if output.exists() else []
    return _judged(supervisor, night, root, actor, ending, left, said, billed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """When a night began and ended, and its exit code; none if it was cut off."""

    began: float
    over: float
    code: int | None


class _Run:
    """The processes of a night."""

    def __init__(
        self, supervisor: Supervisor, night: Night, root: Path, env: dict[str, str], output: Path
    ) -> None:
        self._supervisor = supervisor
        self._night = night
        self._root = root
        self._env = env
        self._output = output

    def to_the_end(self, actor: Actor) -> _Ending:
        """Run the night until it ends or its time is up."""
        began = time.time()
        code = self._until_it_ends(actor)
        return _Ending(began=began, over=time.time(), code=code)

    def _until_it_ends(self, actor: Actor) -> int | None:
        deadline = time.monotonic() + self._night.limit_s
        process = self._begin(self._supervisor.start(self._root, self._night))
        to_kill = bool(self._night.kill_supervisor_at)
        while time.monotonic() < deadline:
            if to_kill and actor.reached.is_set():
                to_kill = False
                _kill_group(process)
                process.wait()
                self._end_agents()
                process = self._begin(self._supervisor.go_on(self._root, self._night))
            if process.poll() is not None:
                return process.returncode
            time.sleep(_LOOK_EVERY_S)
        _kill_group(process)
        process.wait()
        return None

    def end_everything(self, home: Path) -> int:
        """End what the night left running; how many processes that were."""
        left = _processes_with_home(home)
        for process in left:
            _kill(process)
        psutil.wait_procs(left, timeout=_TO_END_S)
        return len(left)

    def _begin(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=self._root,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _end_agents(self) -> None:
        """A power cut takes the agent, too."""
        self.end_everything(Path(self._env["HOME"]))


def _judged(
    supervisor: Supervisor,
    night: Night,
    root: Path,
    actor: Actor,
    ending: _Ending,
    left: int,
    said: list[str],
    billed: Usage,
) -> Result:
    true = truly_done(root)
    claims = supervisor.claims(root)
    false = claims.done - true
    honest = [it for it in actor.rounds.values() if it.honest]
    useful = {it.story: it for it in honest if it.story in true}
    kept = sum((it.billed for it in useful.values()), Usage())
    unsaid = false if claims.proven is None else false & claims.proven
    is_known = bool(actor.misbehaved_at) and not (ending.code == 0 and unsaid)
    known_after = round(ending.over - actor.misbehaved_at, 1)
    log = root.parent / START_LOG
    return Result(
        night=night.name,
        supervisor=supervisor.name,
        truly_done=len(true),
        called_done=len(claims.done),
        falsely_done=len(false),
        proven_falsely=None if claims.proven is None else len(claims.proven & false),
        missed=len(true - claims.done),
        work_lost=len({it.story for it in honest} - true),
        starts=len(log.read_text().splitlines()) if log.exists() else 0,
        tokens=_tokens(billed),
        tokens_wasted=_tokens(billed) - _tokens(kept) if actor.rounds else None,
        dollars=round(billed.cost(PRICES), 2),
        wall_s=round(ending.over - ending.began, 1),
        known_after_s=known_after if is_known and ending.code is not None else None,
        ended="by itself" if ending.code is not None else "cut off",
        exit_code=ending.code,
        left_running=left,
        last_words="\n".join(line[-300:] for line in said[-_LAST_LINES:]).replace(
            f"{root.parent}/", ""
        ),
    )


def _tokens(usage: Usage) -> int:
    """Without cache reads, as providers count a budget."""
    return usage.input + usage.output + usage.cache_write


def _environment(scratch: Path, url: str, night: Night, supervisor: Supervisor) -> dict[str, str]:
    """A world of its own, in which `claude` is the numbered stand-in of the real one."""
    programs = scratch / "bin"
    programs.mkdir()
    numbered = _STAND_IN.format(
        lock=scratch / "starts.lock",
        log=scratch / START_LOG,
        header=START_HEADER,
        program=CLIS["claude"].program,
    )
    for name, text in {"claude": numbered, **supervisor.stand_ins}.items():
        program = programs / name
        program.write_text(text)
        program.chmod(0o755)
    env = claude_env(url, scratch / "home", subscription=night.is_subscription)
    return {
        **env,
        "PATH": f"{programs}{os.pathsep}{env['PATH']}",
        "TERM": "dumb",
        # The CLI's own patience, alike for everybody, so that a night fits into minutes.
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
        "GIT_AUTHOR_NAME": "Night",
        "GIT_AUTHOR_EMAIL": "night@example.com",
        "GIT_COMMITTER_NAME": "Night",
        "GIT_COMMITTER_EMAIL": "night@example.com",
    }


def _processes_with_home(home: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(home):
                found.append(process)
        except psutil.Error:
            continue  # gone, or not ours to look at
    return found


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _git(root: Path, home: Path, *arguments: str) -> None:
    name = ("-c", "user.name=Night", "-c", "user.email=night@example.com")
    git = shutil.which("git") or "git"
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    subprocess.run([git, *name, *arguments], cwd=root, env=env, check=True, capture_output=True)
