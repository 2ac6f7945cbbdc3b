"""Settings written as TOML read back as the same settings."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.config.load import load_config
from ralphloop.config.model import settings
from ralphloop.config.values import exact_duration, toml_line, toml_value
from ralphloop.core.price import Price
from ralphloop.text.durations import parse_duration

# Neither a file nor a command line can carry surrogates or NUL.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WORD = TEXT.filter(lambda text: bool(text) and not text.startswith("-"))
DOLLARS = st.floats(0, 10**9)
PRICES = st.builds(
    Price, input=DOLLARS, output=DOLLARS, cache_read=st.none() | DOLLARS, cache_write=st.none()
)
OVERRIDES = st.fixed_dictionaries(
    {},
    optional={
        "agent.model": TEXT,
        "agent.args": st.lists(TEXT, max_size=3).map(tuple),
        "agent.env": st.dictionaries(WORD.filter(lambda text: "=" not in text), TEXT, max_size=3),
        "agent.safety": st.sampled_from(["minimal", "strict"]),
        "checks.commands": st.lists(st.lists(WORD, min_size=1, max_size=3).map(tuple)).map(tuple),
        "checks.timeout": st.integers(0, 10**7).map(float),
        "prices.models": st.dictionaries(TEXT, PRICES, max_size=3),
        "limits.max_cost_usd": st.floats(0, 10**9),
        "limits.max_iterations": st.integers(0, 10**9),
        "limits.stall_timeout": st.integers(0, 10**10).map(lambda ms: ms / 1000),
    },
)


@given(overrides=OVERRIDES)
def test_what_is_shown_can_be_loaded(
    overrides: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The lines of `ralph config show` are a ralph.toml with the same meaning."""
    lines = []
    for name, value in overrides.items():
        lines += [f"[{settings()[name].section}]", toml_line(settings()[name], value)]
    path = tmp_path_factory.getbasetemp() / "shown" / "ralph.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(_grouped(lines), encoding="utf-8", newline="")
    loaded = load_config(path.parent, env={})
    for name, value in overrides.items():
        section, key = name.split(".")
        assert getattr(getattr(loaded.config, section), key) == value


@given(value=st.dictionaries(TEXT, st.lists(TEXT | st.booleans() | st.integers(), max_size=3)))
def test_any_value_survives_toml(value: dict[str, list[object]]) -> None:
    """Quotes, newlines, control characters and unicode come back as they were."""
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0"), (90, "1m30s"), (900, "15m"), (36_000, "10h"), (5_400, "1h30m"), (0.5, "0.5s")],
)
def test_durations_are_written_as_people_write_them(seconds: float, text: str) -> None:
    """The written form is short and exact."""
    assert exact_duration(seconds) == text
    assert parse_duration(text) == seconds


def _grouped(lines: list[str]) -> str:
    """The same lines with each section named once, as TOML demands."""
    sections: dict[str, list[str]] = {}
    for head, line in zip(lines[::2], lines[1::2], strict=True):
        sections.setdefault(head, []).append(line)
    return "".join(f"{head}\n" + "\n".join(body) + "\n" for head, body in sections.items())
