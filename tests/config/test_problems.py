"""Everything that can be wrong with settings is named: place, what was expected, a suggestion."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.config.known_agents import shipped_agents
from ralphloop.config.load import check_config
from ralphloop.config.model import Config, settings

ROWS = (
    '"name" = { input = 1.0, output = 2.0 }, where known with cache_read and cache_write:'
    " dollars for a million tokens"
)

AGENTS = ", ".join(shipped_agents())


def problems_of(directory: Path, text: str | bytes, env: dict[str, str] | None = None) -> list[str]:
    """Each problem of a ralph.toml as one line."""
    data = text.encode() if isinstance(text, str) else text
    (directory / "ralph.toml").write_bytes(data)
    _, problems = check_config(directory, env=env or {})
    return [f"{problem.place}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    "text, problem",
    [
        # sections and keys
        ("[limit]\n", 'ralph.toml: unknown section "limit"; did you mean limits?'),
        ("[zzz]\n", 'ralph.toml: unknown section "zzz"'),
        ("colour = 1\n", 'ralph.toml: unknown key "colour"'),
        (
            'max_time = "3h"\n',
            "ralph.toml: max_time stands outside a section; it belongs under [limits]",
        ),
        (
            'agent = "claude"\n',
            'ralph.toml: agent: expected a table, got "claude"; begin it with [agent]',
        ),
        ("[[git]]\n", "ralph.toml: git: expected a table, got [{}]; begin it with [git]"),
        (
            "[limits]\nmax_iteration = 5\n",
            "ralph.toml: limits.max_iteration: unknown key; did you mean max_iterations?",
        ),
        (
            "[limits]\nmax-iterations = 5\n",
            "ralph.toml: limits.max-iterations: unknown key; did you mean max_iterations?",
        ),
        (
            "[limits]\nMaxIterations = 5\n",
            "ralph.toml: limits.MaxIterations: unknown key; did you mean max_iterations?",
        ),
        (
            "[agent]\nmax_attempts = 2\n",
            "ralph.toml: agent.max_attempts: unknown key; it belongs under [limits]",
        ),
        ("[git.sub]\nx = 1\n", "ralph.toml: git.sub: unknown key"),
        (
            '[notify]\nurls = ["ntfys://a", "s3cret"]\n',
            'ralph.toml: notify.urls: expected addresses such as "ntfys://my-topic" or'
            ' "jsons://host/path"; item 2 is none',
        ),
        (
            "[notify]\nwebhook = 7\n",
            "ralph.toml: notify.webhook: expected text, got something else",
        ),
        # types and ranges
        (
            '[limits]\nmax_iterations = "5"\n',
            'ralph.toml: limits.max_iterations: expected a whole number, got "5"',
        ),
        (
            "[limits]\nmax_iterations = 2.5\n",
            "ralph.toml: limits.max_iterations: expected a whole number, got 2.5",
        ),
        (
            "[limits]\nmax_iterations = true\n",
            "ralph.toml: limits.max_iterations: expected a whole number, got true",
        ),
        (
            "[limits]\nmax_iterations = -1\n",
            "ralph.toml: limits.max_iterations: expected a whole number >= 0, got -1",
        ),
        (
            "[limits]\nmax_cost_usd = inf\n",
            "ralph.toml: limits.max_cost_usd: expected a number <= 1000000000.0, got inf",
        ),
        (
            "[limits]\nmax_cost_usd = nan\n",
            "ralph.toml: limits.max_cost_usd: expected a number >= 0.0, got nan",
        ),
        (
            '[prices."local-*"]\ninput = 0\n',
            'ralph.toml: prices.models: the row of "local-*": object missing required field output;'
            f" expected {ROWS}",
        ),
        (
            "[prices.x]\ninput = -1\noutput = 0\n",
            'ralph.toml: prices.models: the row of "x": expected a number >= 0.0 for input;'
            f" expected {ROWS}",
        ),
        (
            "[prices.x]\ninput = nan\noutput = 0\n",
            'ralph.toml: prices.models: the row of "x": expected a number >= 0.0 for input;'
            f" expected {ROWS}",
        ),
        (
            "[prices.x]\ninput = 0\noutput = inf\n",
            'ralph.toml: prices.models: the row of "x": expected a number <= 1000000000.0 for output;'
            f" expected {ROWS}",
        ),
        ("[prices]\ninput = 0\n", "ralph.toml: prices.input: unknown key"),
        ("[prices]\nmodels = 3\n", "ralph.toml: prices.models: expected a table, got 3"),
        (
            "[limits]\nmax_time = 2026-01-01\n",
            "ralph.toml: limits.max_time: expected a duration such as "
            '"15m" or "1h30m", got 2026-01-01',
        ),
        (
            f"[limits]\nmax_attempts = 0x{'f' * 6_000}\n",
            "ralph.toml: limits.max_attempts: expected a whole number <= 1000000000, "
            "got a number of thousands of digits",
        ),
        (
            "[circuit]\nno_progress_threshold = 0\n",
            "ralph.toml: circuit.no_progress_threshold: expected a whole number >= 1, got 0",
        ),
        (
            "[circuit]\noutput_decline_percent = 101\n",
            "ralph.toml: circuit.output_decline_percent: expected a whole number <= 100, got 101",
        ),
        ("[git]\ncommit = [1]\n", "ralph.toml: git.commit: expected text, got [1]"),
        ('[stories]\nprd = ""\n', 'ralph.toml: stories.prd: expected text of length >= 1, got ""'),
        ('[stories]\nprd = "a\\u0000b"\n', "ralph.toml: stories.prd: contains a NUL character"),
        # words out of a list
        (
            '[agent]\nname = "cluade"\n',
            f'ralph.toml: agent.name: expected one of {AGENTS}, got "cluade"; did you mean claude?',
        ),
        (
            '[agent]\nfallback = ["codex", "gemni"]\n',
            f"ralph.toml: agent.fallback: expected one of {AGENTS}, "
            'got "gemni"; did you mean gemini?',
        ),
        (
            '[exit]\ngate = "both"\n',
            'ralph.toml: exit.gate: expected one of dual, explicit, got "both"',
        ),
        # command lines
        (
            '[agent]\nargs = "--x \'y"\n',
            'ralph.toml: agent.args: cannot split "--x \'y" into arguments: no closing quotation',
        ),
        ("[agent]\nargs = [1]\n", "ralph.toml: agent.args: expected text as item 1, got [1]"),
        (
            '[checks]\ncommands = ["pytest", "-q"]\n',
            'ralph.toml: checks.commands: item 2 is "-q", which is an option and no command; '
            'one command is a list in the list: [["pytest", "-q"]]',
        ),
        ("[checks]\ncommands = [[]]\n", "ralph.toml: checks.commands: item 1 is an empty command"),
        ("[checks]\ncommands = 5\n", "ralph.toml: checks.commands: expected a list, got 5"),
        (
            '[agent]\nname = "command"\n',
            'ralph.toml: agent.name: is "command", so agent.command must say which: '
            'command = ["./my-agent"]',
        ),
        (
            '[agent]\nfallback = ["command"]\n',
            'ralph.toml: agent.fallback: is "command", so agent.command must say which: '
            'command = ["./my-agent"]',
        ),
        (
            '[agent.env]\n"A=B" = "x"\n',
            'ralph.toml: agent.env: "A=B" cannot be the name of an environment variable',
        ),
    ],
)
def test_each_mistake_is_named_with_its_place(text: str, problem: str, tmp_path: Path) -> None:
    """One mistake gives exactly one problem that says where it is and what to write."""
    assert problems_of(tmp_path, text) == [problem]


@pytest.mark.parametrize(
    "data, words",
    [
        (b"[limits\n", "is not valid TOML"),
        (b"[limits]\nmax_iterations = \n", "at line 2"),
        (b"[limits]\nmax_iterations = 1\nmax_iterations = 2\n", "is not valid TOML"),
        (b"[limits]\nmax_iterations = \xff\n", "is not UTF-8 text (byte 26)"),
        (b"x = 1" + b"0" * 5_000, "is not valid TOML"),
        (b"#" * 300_000, "larger than 256 KiB"),
        (b"a = " + b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_an_unreadable_file_is_one_problem(data: bytes, words: str, tmp_path: Path) -> None:
    """Broken files say what is broken, with the line where there is one."""
    problems = problems_of(tmp_path, data)
    assert len(problems) == 1
    assert problems[0].startswith("ralph.toml: ")
    assert words in problems[0]


def test_a_directory_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    """The reason of the system is passed on."""
    (tmp_path / "ralph.toml").mkdir()
    _, problems = check_config(tmp_path, env={})
    assert [problem.message for problem in problems] == ["cannot be read: Is a directory"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_a_problem(tmp_path: Path) -> None:
    """Settings that cannot be read are not silently left out."""
    (tmp_path / "ralph.toml").touch(mode=0o000)
    _, problems = check_config(tmp_path, env={})
    assert [problem.message for problem in problems] == ["cannot be read: Permission denied"]


def test_all_problems_are_listed_and_the_rest_still_counts(tmp_path: Path) -> None:
    """One mistake hides neither another nor the good values beside it."""
    text = '[limits]\nmax_iterations = "x"\nmax_attempts = 9\n[exit]\ngate = 1\n'
    (tmp_path / "ralph.toml").write_text(text)
    loaded, problems = check_config(tmp_path, env={"CB_SAME_ERROR_THRESHOLD": "x"})
    assert [problem.place for problem in problems] == [
        "ralph.toml: limits.max_iterations",
        "ralph.toml: exit.gate",
        "environment CB_SAME_ERROR_THRESHOLD",
    ]
    assert loaded.config.limits.max_attempts == 9
    assert loaded.config.limits.max_iterations == Config().limits.max_iterations


def test_a_misspelt_variable_is_a_problem(tmp_path: Path) -> None:
    """A limit that was meant to hold must not be ignored because of a letter."""
    assert problems_of(tmp_path, "", {"RALPH_LIMITS_MAX_ITERATION": "3"}) == [
        "environment: unknown setting RALPH_LIMITS_MAX_ITERATION; "
        "did you mean RALPH_LIMITS_MAX_ITERATIONS?"
    ]


def test_values_for_the_agent_never_appear_in_a_problem(tmp_path: Path) -> None:
    """Variables may be keys, and error messages end up in logs."""
    problems = problems_of(tmp_path, '[agent.env]\nKEY = "sk-secret"\nN = 1\n')
    assert problems == ["ralph.toml: agent.env: expected text, got something else"]


def test_problems_are_bounded(tmp_path: Path) -> None:
    """A file of nonsense does not print thousands of lines."""
    nonsense = "[limits]\n" + "".join(f"key{n} = 1\n" for n in range(5_000))
    assert len(problems_of(tmp_path, nonsense)) == 50


@given(data=st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever stands in the file, there is an answer and never an exception."""
    path = tmp_path_factory.getbasetemp() / "any" / "ralph.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    check_config(path.parent, env={})


SCALARS = st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(value=VALUES, name=st.sampled_from(sorted(settings())))
def test_no_value_breaks_the_reader(value: object, name: str) -> None:
    """Any value of any type in any place is accepted or becomes problems of that place."""
    _, problems = check_config(Path("/nowhere"), env={}, flags={name: value})
    assert all(problem.place == f"command line: {name}" for problem in problems)
