"""Settings come in layers, each value with its origin."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ralphloop.config.load import load_config, user_file
from ralphloop.config.model import AgentSection, Config, settings
from ralphloop.config.values import read_value
from ralphloop.core.price import Price
from ralphloop.errors import InputError, UsageError

# The documented defaults; a project's own command and checks start empty.
DOCUMENTED = """
[agent]
name = "claude"
command = []
format = "text"
model = ""
binary = ""
args = []
env = {}
pass_env = []
context = "fresh"
safety = "moderate"
allow = []
fallback = []
escalate = []
ask_for_status = true
[checks]
commands = []
timeout = "15m"
baseline = "strict"
doubt = []
[proof]
experiments = "auto"
changed_tests = "show"
ask_for_tests = "auto"
clean_tree = "auto"
sealed_output = "names"
[limits]
max_iterations = 50
max_cost_usd = 0.0
max_tokens = 0
max_start_cost_usd = 0.0
max_start_tokens = 0
max_time = "10h"
calls_per_hour = 100
iteration_timeout = "60m"
stall_timeout = "10m"
max_attempts = 3
max_story_share = 0.5
reserve = ""
until = ""
on_usage_limit = "wait"
backoff = "5s"
[prices]
models = {}
[circuit]
preset = "standard"
no_progress_threshold = 3
same_error_threshold = 5
output_decline_percent = 70
cooldown_minutes = 0
test_saturation = 3
treading_window = 6
treading_lines = 10
stuck_same_error = 3
stuck_same_reply = 3
stuck_alternation = 4
stuck_revisits = 3
interim_checks = 5
[exit]
gate = "dual"
[git]
commit = "story"
scope = "repository"
patience = "10m"
pr = "run"
follow_rounds = 3
follow_every = "30s"
[lanes]
count = 0
setup = []
copy = []
where = ""
train = 1
[fleet]
server = ""
remote = "origin"
repository = ""
lease = "30s"
namespace = "default"
tls = false
tls_ca = ""
tls_cert = ""
tls_key = ""
api_key = ""
codec_key_file = ""
codec_key = ""
ssh = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5"]
program = ["ralph"]
repos = {}
slots = 1
labels = []
account = ""
where = ""
[sandbox]
mode = "off"
network = "open"
write = []
hide = []
git = "read-only"
[stories]
prd = "prd.json"
accept_found = false
max_found = 3
write_back = false
queue = []
queue_every = "1m"
[session]
on_end = []
keep_awake = true
[learning]
enabled = true
budget_tokens = 800
every = 5
memory = "auto"
skills = "auto"
holdout = 5
ask_agent = false
[notify]
desktop = false
command = []
urls = []
webhook = ""
webhook_private = false
most = 6
"""


def write(directory: Path, text: str) -> Path:
    """Put a ralph.toml there and return the directory."""
    (directory / "ralph.toml").write_text(text, encoding="utf-8")
    return directory


def test_no_file_means_the_documented_defaults(tmp_path: Path) -> None:
    """A project without ralph.toml runs with the defaults, each said to be one."""
    loaded = load_config(tmp_path, env={})
    assert loaded.config == Config()
    assert set(loaded.origins.values()) == {"default"}


def test_the_documented_file_equals_the_defaults(tmp_path: Path) -> None:
    """Every documented key exists, no other does, and its documented value is the default."""
    documented = tomllib.loads(DOCUMENTED)
    names = {f"{section}.{key}" for section, table in documented.items() for key in table}
    assert names == set(settings())
    assert load_config(write(tmp_path, DOCUMENTED), env={}).config == Config()


def test_each_layer_beats_the_one_below(tmp_path: Path) -> None:
    """Defaults < user file < ralph.toml < environment < flags, and each value knows its layer."""
    user = tmp_path / "home" / "ralph" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(
        "[limits]\nmax_iterations = 1\nmax_attempts = 1\ncalls_per_hour = 1\nmax_cost_usd = 1.0\n"
    )
    write(tmp_path, "[limits]\nmax_attempts = 2\ncalls_per_hour = 2\nmax_cost_usd = 2.0\n")
    env = {"RALPH_LIMITS_CALLS_PER_HOUR": "3", "RALPH_LIMITS_MAX_COST_USD": "3"}
    env["XDG_CONFIG_HOME"] = str(tmp_path / "home")
    loaded = load_config(tmp_path, env=env, flags={"limits.max_cost_usd": 4.0})
    limits = loaded.config.limits
    assert (limits.max_iterations, limits.max_attempts) == (1, 2)
    assert (limits.calls_per_hour, limits.max_cost_usd) == (3, 4.0)
    assert [loaded.origins[f"limits.{key}"] for key in ("max_time", "max_iterations")] == [
        "default",
        str(user),
    ]
    assert loaded.origins["limits.max_attempts"] == "ralph.toml"
    assert loaded.origins["limits.calls_per_hour"] == "environment RALPH_LIMITS_CALLS_PER_HOUR"
    assert loaded.origins["limits.max_cost_usd"] == "flag"


@pytest.mark.parametrize(
    "variable, value, name, expected",
    [
        ("CB_NO_PROGRESS_THRESHOLD", "4", "circuit.no_progress_threshold", 4),
        ("CB_SAME_ERROR_THRESHOLD", "6", "circuit.same_error_threshold", 6),
        ("CB_OUTPUT_DECLINE_PERCENT", "50", "circuit.output_decline_percent", 50),
        ("RALPH_AGENT_NAME", "codex", "agent.name", "codex"),
        ("RALPH_AGENT_COMMAND", "./my agent 'a b'", "agent.command", ("./my", "agent", "a b")),
        ("RALPH_AGENT_PASS_ENV", "FOO, BAR BAZ", "agent.pass_env", ("FOO", "BAR", "BAZ")),
        ("RALPH_AGENT_ENV", "A=1 B='x y'", "agent.env", {"A": "1", "B": "x y"}),
        ("RALPH_NOTIFY_URLS", "ntfys://a json://b/,c", "notify.urls", ("ntfys://a", "json://b/,c")),
        ("RALPH_AGENT_FALLBACK", "codex,gemini", "agent.fallback", ("codex", "gemini")),
        ("RALPH_CHECKS_COMMANDS", "pytest -q", "checks.commands", (("pytest", "-q"),)),
        ("RALPH_LIMITS_MAX_TIME", "1h30m", "limits.max_time", 5400.0),
        ("RALPH_LIMITS_MAX_ITERATIONS", " 7 ", "limits.max_iterations", 7),
        ("RALPH_LIMITS_MAX_COST_USD", "2.5", "limits.max_cost_usd", 2.5),
    ],
)
def test_the_environment_is_read_from_text(
    variable: str, value: str, name: str, expected: object, tmp_path: Path
) -> None:
    """Numbers, durations and lists are written as text in a variable."""
    loaded = load_config(tmp_path, env={variable: value})
    section, key = name.split(".")
    assert getattr(getattr(loaded.config, section), key) == expected
    assert loaded.origins[name] == f"environment {variable}"


def test_our_name_beats_the_older_one(tmp_path: Path) -> None:
    """Where both spellings are set, the one that names the setting counts."""
    env = {"CB_SAME_ERROR_THRESHOLD": "6", "RALPH_CIRCUIT_SAME_ERROR_THRESHOLD": "7"}
    assert load_config(tmp_path, env=env).config.circuit.same_error_threshold == 7


def test_empty_and_foreign_variables_are_not_settings(tmp_path: Path) -> None:
    """An empty variable is unset; variables of other purposes are left alone."""
    env = {
        "RALPH_LIMITS_MAX_ITERATIONS": "",
        "RALPH_RUN_ID": "x",
        "RALPH_DEBUG": "1",
        "RALPH_AGENT_MARK": "x",
        "LIMITS_MAX_TIME": "soon",
    }
    assert set(load_config(tmp_path, env=env).origins.values()) == {"default"}


def test_a_flag_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    """None is how the command line says that a flag is absent."""
    loaded = load_config(tmp_path, env={}, flags={"limits.max_iterations": None})
    assert loaded.origins["limits.max_iterations"] == "default"


@pytest.mark.parametrize(
    "written, expected",
    [
        ('commands = [["pytest", "-q"]]', (("pytest", "-q"),)),
        ('commands = ["pytest -q", ["npm", "test"]]', (("pytest", "-q"), ("npm", "test"))),
        ('commands = "make check"', (("make", "check"),)),
        ("commands = [\"sh -c 'a; b && c'\"]", (("sh", "-c", "a; b && c"),)),
        ('commands = ["echo $HOME; true"]', (("echo", "$HOME;", "true"),)),
        ("commands = []", ()),
    ],
)
def test_commands_are_lists_or_split_like_a_shell_would(
    written: str, expected: object, tmp_path: Path
) -> None:
    """Quotes are honoured, nothing is expanded, and no shell will see it."""
    loaded = load_config(write(tmp_path, f"[checks]\n{written}\n"), env={})
    assert loaded.config.checks.commands == expected


def test_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    """Some editors write one."""
    write(tmp_path, "\ufeff[limits]\nmax_iterations = 9\n")
    assert load_config(tmp_path, env={}).config.limits.max_iterations == 9


@pytest.mark.parametrize(
    "env, expected",
    [
        ({"HOME": "/h"}, "/h/.config/ralph/config.toml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/ralph/config.toml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config/ralph/config.toml"),
        ({}, None),
    ],
)
def test_the_user_file_follows_xdg(env: dict[str, str], expected: str | None) -> None:
    """The XDG directory counts only if it is absolute, as its specification says."""
    found = user_file(env)
    assert (str(found) if found else None) == expected


def test_loading_stops_at_problems_and_counts_them(tmp_path: Path) -> None:
    """The error names the first problem, how many more there are, and the way to see them."""
    write(tmp_path, '[limits]\nmax_iterations = "many"\nmax_attempt = 1\n')
    with pytest.raises(InputError) as caught:
        load_config(tmp_path, env={})
    assert caught.value.place.startswith("ralph.toml: limits.")
    assert "(and 1 more)" in caught.value.message
    assert "ralph config validate" in caught.value.next_step


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"limits.max_iterations": "many"}, 'expected a whole number, got "many"'),
        ({"limits.max_iteration": 3}, "did you mean limits.max_iterations?"),
        ({"limits.max_time": "soon"}, "not a duration"),
    ],
)
def test_a_bad_flag_is_a_usage_error(
    flags: dict[str, object], message: str, tmp_path: Path
) -> None:
    """What is wrong on the command line ends with 64, not 65."""
    with pytest.raises(UsageError, match="command line") as caught:
        load_config(tmp_path, env={}, flags=flags)
    assert message in caught.value.message


def test_prices_are_rows_by_name(tmp_path: Path) -> None:
    """Right below [prices], below [prices.models], or as text: the same rows."""
    local = Price(input=0.0, output=0.0)
    dear = Price(input=1.0, output=2.0, cache_read=0.5)
    rows = {
        '[prices."local-*"]\ninput = 0\noutput = 0\n': {"local-*": local},
        '[prices]\n"local-*" = { input = 0, output = 0 }\n': {"local-*": local},
        "[prices.models]\nx = { input = 1, output = 2, cache_read = 0.5 }\n"
        '[prices."local-*"]\ninput = 0\noutput = 0\n': {"x": dear, "local-*": local},
    }
    for written, expected in rows.items():
        loaded = load_config(write(tmp_path, written), env={})
        assert loaded.config.prices.models == expected
        assert loaded.origins["prices.models"] == "ralph.toml"
    env = {"RALPH_PRICES_MODELS": '{"x": {"input": 1, "output": 2, "cache_read": 0.5}}'}
    assert load_config(tmp_path, env=env).config.prices.models == {"x": dear}


def test_defaults_are_values_their_own_types_accept() -> None:
    """No default would be refused if a person wrote it."""
    for setting in settings().values():
        assert read_value(setting, setting.default, from_text=False) == setting.default


@pytest.mark.parametrize(
    ("agent", "keeps"),
    [
        (AgentSection(), True),
        (AgentSection(escalate=("haiku", "opus")), True),
        (AgentSection(fallback=("codex",)), False),
        (AgentSection(escalate=("haiku", "codex:gpt-5")), False),
        (AgentSection(name="codex"), False),
    ],
)
def test_a_budget_is_kept_where_every_agent_takes_one(agent: AgentSection, keeps: bool) -> None:
    """The run and its screens decide by the same word how many starts the money left can pay."""
    assert agent.keeps_to_budget is keeps
