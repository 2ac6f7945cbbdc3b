"""Asking the agent: bounded, elsewhere, and never trusted to write YAML."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.agents.base import AgentRequest, load_agent
from ralphloop.config.model import AgentName, AgentSection
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.learning.ask import STORY, Asked, ask, read_reply
from ralphloop.learning.model import Kind, Source
from ralphloop.proc.steps import StopSignal

GOOD = """\
successes:
  - pattern: "use the factory in tests"
    category: "testing"
failures:
  - pattern: "the build broke"
    lesson: "pin the compiler"
discoveries: []
"""


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"Sure!\n\n```yaml\n{GOOD}```\nAnything else?",
        f"---\n{GOOD}",
        GOOD.replace("\n", "\r\n"),
    ],
    ids=["bare", "fenced", "document", "crlf"],
)
def test_yaml_is_found_in_an_answer(reply: str) -> None:
    """Bare, fenced or after some words: the notes are the same."""
    notes, problem = read_reply(reply)
    assert problem == ""
    assert [(n.kind, n.text, n.lesson, n.category) for n in notes] == [
        (Kind.SUCCESS, "use the factory in tests", "", "testing"),
        (Kind.FAILURE, "the build broke", "pin the compiler", "general"),
    ]
    assert {n.source for n in notes} == {Source.ASKED}


@pytest.mark.parametrize(
    "reply",
    [
        GOOD.replace('"the build broke"', "the build broke: no linker"),
        GOOD.replace("    lesson", "\tlesson"),
        GOOD.replace('"pin the compiler"', '"pin the compiler'),
        GOOD.replace("    category", " category"),
    ],
    ids=["colon", "tab", "quote", "indentation"],
)
def test_the_usual_mistakes_are_repaired(reply: str) -> None:
    """What models get wrong costs no learning, and is said."""
    notes, problem = read_reply(reply)
    assert problem == "the YAML was repaired"
    assert notes[0].text == "use the factory in tests"
    assert len(notes) == 2


BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 13)
)  # a million millions of entries, once unfolded


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I learned nothing.",
        "```\nrm -rf /\n```",
        "successes: 3\nfailures: [[[\n",
        "successes:\n  - pattern: {a: b}\n",
        "successes:\n  - !!python/object/apply:os.system ['touch owned']\n",
        BOMB + "successes: *a12\n",
        "successes:\n" + "  - pattern: x\n" * 10_000,
        "successes: " + "[" * 5_000,
    ],
)
def test_everything_else_is_rejected(reply: str) -> None:
    """Nonsense, tags, floods and bombs that nobody would see unfold give no notes."""
    notes, _ = read_reply(reply)
    assert notes == ()


@given(st.text(max_size=500))
def test_no_answer_is_an_error(reply: str) -> None:
    """Whatever comes back, it is read or refused."""
    for text in (reply, f"successes:\n{reply}", f"```\n{reply}\n```"):
        notes, _ = read_reply(text)
        assert len(notes) <= 15


def asked(tmp_path: Path, steps: list[Any], **more: Any) -> Asked:
    """Ask a scripted agent, a real process."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "script.json").write_text(json.dumps({"stories": {STORY: [steps]}}))
    config = AgentSection(name=AgentName.SCRIPTED, command=("script.json",))
    request = AgentRequest(
        config=config,
        settings_dir=tmp_path / "settings",
        prompt="the story's own prompt",
        cwd=root,
        run_id="r1",
        iteration=1,
        inherited={},
        story_id="US-1",
        budget_usd=0.05,
    )
    return asyncio.run(
        ask(
            load_agent("scripted"),
            request,
            outcome="passed",
            said="LEARNED: everything",
            checks=[CheckResult(name="make", status=CheckStatus.FAILED, output_tail="boom")],
            transcript=tmp_path / "1.learn.log",
            stop=StopSignal(),
            **more,
        )
    )


def test_a_real_agent_is_asked(tmp_path: Path) -> None:
    """It sees the excerpt, answers once, and what it used is reported."""
    usage = {"usage": {"input_tokens": 900, "output_tokens": 100, "cost_usd": 0.01}}
    found = {"contains": "$ make\nboom", "then": [{"say": GOOD}, usage], "else": [{"exit": 1}]}
    answer = asked(tmp_path, [{"if_prompt": found}])
    assert len(answer.notes) == 2
    assert (answer.usage.total_tokens, answer.usage.cost_usd) == (1_000, 0.01)
    assert (tmp_path / "1.learn.log").exists()


def test_what_it_does_happens_elsewhere(tmp_path: Path) -> None:
    """Files it writes on the way are not in the project."""
    asked(tmp_path, [{"write": {"owned.txt": "hello"}}, {"say": GOOD}])
    assert [path.name for path in (tmp_path / "project").iterdir()] == ["script.json"]


def test_an_agent_that_fails_is_words(tmp_path: Path) -> None:
    """No answer, no learning, no exception."""
    answer = asked(tmp_path, [{"fatal": "authentication_failed"}])
    assert answer.notes == ()
    assert answer.problem
