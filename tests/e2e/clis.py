"""The real CLIs: pinned versions from npm in a cache of the project, run in a world of their own.

`python -m tests.e2e.clis claude codex` installs them (`make e2e` does); what is there already is
left alone.  A run has its own HOME and TMPDIR and otherwise nothing but PATH, so that nothing of
the person who runs the tests leaks in.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.processes import wait_until

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".e2e-cache"


YEAR_OLD = "claude-2.0"  # people do not update every week


class NotInstalled(RuntimeError):
    """A CLI, or npm, is not there; says how to get it."""


@dataclass(frozen=True, slots=True)
class Cli:
    """One CLI at the version we test with."""

    name: str
    package: str
    version: str

    @property
    def home(self) -> Path:
        """Where it is installed; another version has another place."""
        return CACHE / f"{self.name}-{self.version}"

    @property
    def program(self) -> Path:
        """The program; raises `NotInstalled` where it is missing."""
        if not self._stamp.exists():
            raise NotInstalled(f"{self.name} {self.version} is not installed: run `make e2e-all`")
        return self.home / "node_modules" / ".bin" / self.name

    def install(self, npm: str) -> bool:
        """Install it unless it is there; says whether there was anything to do."""
        if self._stamp.exists():
            return False
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        # npm runs an install script only for packages that are named here.
        package = {"private": True, "allowScripts": {self.package: True}}
        (self.home / "package.json").write_text(json.dumps(package))
        quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
        subprocess.run(
            [npm, "install", *quiet, f"{self.package}@{self.version}"],
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        self._stamp.touch()
        return True

    @property
    def _stamp(self) -> Path:
        return self.home / ".installed"


CLIS = {
    cli.name: cli
    for cli in (
        Cli("claude", "@anthropic-ai/claude-code", "2.1.325"),
        Cli("codex", "@openai/codex", "0.166.0"),
        Cli("gemini", "@google/gemini-cli", "0.61.0"),
        Cli("opencode", "opencode-ai", "1.18.33"),
        *(
            Cli(f"{name}-{version.partition('.')[0]}", name, version)
            for name, version in (
                ("jest", "30.5.2"),
                ("jest", "27.5.1"),
                ("mocha", "12.0.3"),
                ("mocha", "10.8.2"),
                ("vitest", "4.1.12"),
                ("vitest", "1.6.1"),
            )
        ),
    )
}
CLIS[YEAR_OLD] = Cli("claude", "@anthropic-ai/claude-code", "2.0.76")


# --- the world of a run ----------------------------------------------------------------------


def bare_env(home: Path) -> dict[str, str]:
    """A home, a directory for temporary files, the search path; nothing else."""
    tmp = home / "tmp"
    tmp.mkdir(parents=True, exist_ok=True)
    trusted = {"RALPH_TRUST": "1"}  # the settings are the tests' own
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmp), **trusted}


def claude_env(url: str, home: Path, *, subscription: bool = False) -> dict[str, str]:
    """Claude Code with an API key, or logged in with a subscription, where limits are told."""
    login = (
        {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"}
        if subscription
        else {"ANTHROPIC_API_KEY": "sk-ant-scripted-0000"}
    )
    return {
        **bare_env(home),
        **login,
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",  # as root it skips permission prompts only where this is said
    }


_CODEX_CONFIG = """\
model = "scripted-model"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


def codex_env(url: str, home: Path) -> dict[str, str]:
    """Codex with a provider of its own; it retries once, as a test has no hour to spend."""
    settings = home / ".codex"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "config.toml").write_text(_CODEX_CONFIG.format(url=url))
    # The provider asks for no login, but `codex login status` does not know that.
    login = {"auth_mode": "apikey", "OPENAI_API_KEY": "sk-scripted"}
    (settings / "auth.json").write_text(json.dumps(login))
    return {**bare_env(home), "SCRIPTED_API_KEY": "scripted"}


def gemini_env(url: str, home: Path) -> dict[str, str]:
    """The Gemini CLI with an API key, in a directory it trusts, without its relaunching parent."""
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        json.dumps(
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
            }
        )
    )
    return {
        **bare_env(home),
        "GEMINI_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }


def opencode_env(url: str, home: Path) -> dict[str, str]:
    """Opencode with a provider of its own, at 3 and 15 dollars per million tokens."""
    model = {
        "name": "Scripted",
        "limit": {"context": 200_000, "output": 8_000},
        "cost": {"input": 3, "output": 15},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"scripted-model": model},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"scripted": provider},
        "model": "scripted/scripted-model",
        "small_model": "scripted/scripted-model",
    }
    return {
        **bare_env(home),
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


ENVIRONMENTS = {
    "claude": claude_env,
    "codex": codex_env,
    "gemini": gemini_env,
    "opencode": opencode_env,
}


def run_cli(
    name: str,
    *arguments: str,
    prompt: str,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float = 60.0,
) -> subprocess.CompletedProcess[bytes]:
    """Run a CLI to its end, the prompt on its stdin."""
    return subprocess.run(
        [str(CLIS[name].program), *arguments],
        cwd=cwd,
        env=dict(env),
        input=prompt.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )


def run_until_killed(
    name: str,
    *arguments: str,
    prompt: str,
    cwd: Path,
    env: Mapping[str, str],
    sight: bytes,
    when: Callable[[], bool] = lambda: True,
    how: signal.Signals = signal.SIGTERM,
) -> tuple[bytes, int]:
    """Run a CLI until it has printed something, then end its whole process group by a signal.

    `when` is waited for before the signal is sent.
    """
    with subprocess.Popen(
        [str(CLIS[name].program), *arguments],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(prompt.encode())
        process.stdin.close()
        seen = [process.stdout.readline()]
        while sight not in seen[-1] and seen[-1]:
            seen.append(process.stdout.readline())
        wait_until(when, "the CLI is ready to be ended")
        os.killpg(process.pid, how)
        seen.append(process.stdout.read())
    return b"".join(seen), process.returncode


def main(names: Sequence[str]) -> int:
    """Install the CLIs that are named."""
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("error: npm is not on PATH\n  next: install Node.js 20 or newer\n")
        return 1
    for cli in (CLIS[name] for name in names):
        try:
            if cli.install(npm):
                sys.stdout.write(f"installed {cli.name} {cli.version}\n")
        except subprocess.CalledProcessError:
            sys.stderr.write(
                f"error: npm cannot install {cli.package}@{cli.version}\n"
                "  next: see what it says above; `npm ping` tells whether it can be reached\n"
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
