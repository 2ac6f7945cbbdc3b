"""The real CLIs: pinned versions from npm or PyPI in a cache of the project, run in a world of
their own.

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
    place: str = ""  # of the program in its home, where that is not npm's usual one

    @property
    def home(self) -> Path:
        """Where it is installed; another version has another place."""
        return CACHE / f"{self.name}-{self.version}"

    @property
    def program(self) -> Path:
        """The program; raises `NotInstalled` where it is missing."""
        if not self._stamp.exists():
            raise NotInstalled(f"{self.name} {self.version} is not installed: run `make e2e-all`")
        return self.home / (self.place or f"node_modules/.bin/{self.name}")

    def install(self) -> bool:
        """Install it unless it is there; says whether there was anything to do."""
        if self._stamp.exists():
            return False
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self._bring()
        self._stamp.touch()
        return True

    def _bring(self) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise NotInstalled("npm is not on PATH: install Node.js 20 or newer")
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
        if self.place:  # a package that is nothing but a program
            (self.home / self.place).chmod(0o755)

    @property
    def _stamp(self) -> Path:
        return self.home / ".installed"


@dataclass(frozen=True, slots=True)
class PyCli(Cli):
    """One from PyPI, in a virtual environment of its own."""

    oldest: int = 11  # the Python 3 it needs at least

    def _bring(self) -> None:
        python = _python(self.oldest)
        if not python:
            raise NotInstalled(f"{self.name} needs Python 3.{self.oldest} or newer, found none")
        subprocess.run([python, "-m", "venv", str(self.home)], check=True)
        pip = [str(self.home / "bin/pip"), "install", "-q", f"{self.package}=={self.version}"]
        subprocess.run(pip, stdin=subprocess.DEVNULL, check=True)


def _python(oldest: int) -> str:
    """A Python 3 that is at least this old; the name of one on PATH may lead nowhere."""
    named = ["python3", *(f"python3.{minor}" for minor in range(oldest, oldest + 4))]
    found = [path for name in named if (path := shutil.which(name))]
    kept = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    asked = f"import sys; sys.exit(not (3, {oldest}) <= sys.version_info < (3, 14))"
    for path in (*found, *map(str, kept)):
        if subprocess.run([path, "-c", asked], capture_output=True, check=False).returncode == 0:
            return path
    return ""


_GOOSE = "@aaif/goose-binary-linux-x64"

CLIS = {
    cli.name: cli
    for cli in (
        Cli("claude", "@anthropic-ai/claude-code", "2.1.325"),
        Cli("codex", "@openai/codex", "0.166.0"),
        Cli("gemini", "@google/gemini-cli", "0.61.0"),
        Cli("opencode", "opencode-ai", "1.18.33"),
        Cli("qwen", "@qwen-code/qwen-code", "0.24.4"),
        Cli("copilot", "@github/copilot", "1.0.102"),
        Cli("droid", "droid", "0.215.0"),
        Cli("cline", "cline", "3.0.65"),
        Cli("cn", "@continuedev/cli", "1.5.47"),
        Cli("goose", _GOOSE, "1.52.0", f"node_modules/{_GOOSE}/bin/goose"),
        PyCli("aider", "aider-chat", "0.86.2", "bin/aider"),
        PyCli("openhands", "openhands", "1.16.0", "bin/openhands", 12),
        *(
            Cli(f"{name}-{version.partition('.')[0]}", name, version)
            for name, version in (
                ("jest", "30.5.2"),
                ("jest", "27.5.1"),
                ("mocha", "12.0.3"),
                ("mocha", "10.8.2"),
                ("vitest", "4.1.12"),
                ("vitest", "1.6.1"),
                ("ts-jest", "29.4.15"),  # with jest and TypeScript, which it asks for
                ("tsx", "4.23.15"),
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


def qwen_env(url: str, home: Path) -> dict[str, str]:
    """Qwen Code with a key for an OpenAI-compatible provider."""
    model = {"OPENAI_MODEL": "qwen3-coder-plus"}
    return {**bare_env(home), "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "scripted", **model}


def copilot_env(url: str, home: Path) -> dict[str, str]:
    """Copilot with a provider of its own, which needs no login."""
    return {
        **bare_env(home),
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "scripted",
        "COPILOT_MODEL": "scripted-model",
    }


def droid_env(url: str, home: Path) -> dict[str, str]:
    """Droid with a model of its own, which needs no login."""
    model = {
        "model": "scripted-model",
        "displayName": "Scripted",
        "baseUrl": f"{url}/v1",
        "apiKey": "scripted",
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 8_000,
    }
    settings = home / ".factory" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"customModels": [model]}))
    return bare_env(home)


def cline_env(url: str, home: Path) -> dict[str, str]:
    """Cline after its own `auth` has named the provider."""
    env = bare_env(home)
    program = str(CLIS["cline"].program)
    told = ["-p", "openai", "-k", "scripted", "-b", f"{url}/v1", "-m", "scripted-model"]
    subprocess.run([program, "auth", *told], env=env, capture_output=True, timeout=60, check=True)
    return env


def cn_env(url: str, home: Path) -> dict[str, str]:
    """Continue's CLI with a model of its own in its settings."""
    settings = home / ".continue" / "config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        "name: scripted\nversion: 0.0.1\nschema: v1\nmodels:\n"
        "  - name: scripted\n    provider: openai\n    model: scripted-model\n"
        f"    apiBase: {url}/v1\n    apiKey: scripted\n    roles: [chat]\n"
    )
    return bare_env(home)


def goose_env(url: str, home: Path) -> dict[str, str]:
    """Goose with an OpenAI-compatible provider, its settings in no keyring."""
    return {
        **bare_env(home),
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "scripted-model",
        "GOOSE_DISABLE_KEYRING": "1",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "scripted",
    }


def aider_env(url: str, home: Path) -> dict[str, str]:
    """Aider with an OpenAI-compatible provider."""
    return {**bare_env(home), "OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "scripted"}


_OPENHANDS_SETTINGS = """
import sys
from openhands.sdk import LLM
from openhands_cli.stores import AgentStore
from openhands_cli.utils import get_default_cli_agent
llm = LLM(model="openai/scripted-model", api_key="scripted", base_url=sys.argv[1], usage_id="agent")
AgentStore().save(get_default_cli_agent(llm=llm))
"""


def openhands_env(url: str, home: Path) -> dict[str, str]:
    """OpenHands after its own settings have named the model, without which it speaks no ACP."""
    env = {**bare_env(home), "OPENHANDS_SUPPRESS_BANNER": "1"}
    python = str(CLIS["openhands"].home / "bin" / "python")
    told = [python, "-c", _OPENHANDS_SETTINGS, f"{url}/v1"]
    subprocess.run(told, env=env, capture_output=True, timeout=120, check=True)
    return env


ENVIRONMENTS = {
    "goose": goose_env,
    "aider": aider_env,
    "openhands": openhands_env,
    "qwen": qwen_env,
    "copilot": copilot_env,
    "droid": droid_env,
    "cline": cline_env,
    "cn": cn_env,
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
    """Install the CLIs that are named; one that cannot be does not keep the others from it."""
    missing = list[str]()
    for cli in (CLIS[name] for name in names):
        try:
            if cli.install():
                sys.stdout.write(f"installed {cli.name} {cli.version}\n")
        except NotInstalled as error:
            missing.append(f"{cli.name}: {error}")
        except subprocess.CalledProcessError:
            missing.append(f"{cli.name}: {cli.package} {cli.version}, see npm or pip above")
    for line in missing:
        sys.stderr.write(f"error: cannot be installed: {line}\n")
    if missing:
        sys.stderr.write("  next: `npm ping` and `pip index versions` tell what is reached\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
