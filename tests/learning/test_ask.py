"""Asking the agent: bounded, elsewhere, and read like its other words."""

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
from ralphloop.core.model import CheckResult, CheckStatus, Usage
from ralphloop.learning.ask import STORY, ask, read_reply
from ralphloop.learning.model import Kind, Note, Source
from ralphloop.proc.steps import StopSignal

GOOD = """\
LEARNED: use the factory of tests/factory.py
LEARNED: the build broke without a linker: pin the compiler
"""


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"Sure!\n\n```\n{GOOD}```\nAnything else?",
        GOOD.replace("LEARNED", "- **LEARNED**"),
        GOOD.replace("\n", "\r\n"),
    ],
    ids=["bare", "fenced", "bullets", "crlf"],
)
def test_notes_are_found_in_an_answer(reply: str) -> None:
    """Bare, fenced or after some words: the notes are the same."""
    notes = read_reply(reply)
    assert [(n.kind, n.text) for n in notes] == [
        (Kind.DISCOVERY, "use the factory of tests/factory.py"),
        (Kind.DISCOVERY, "the build broke without a linker: pin the compiler"),
    ]
    assert {n.source for n in notes} == {Source.ASKED}


@pytest.mark.parametrize("reply", ["", "I learned nothing.", "```\nrm -rf /\n```", "LEARNED:"])
def test_everything_else_is_nothing(reply: str) -> None:
    """Words that are not marked give no notes."""
    assert read_reply(reply) == ()


@given(st.text(max_size=500))
def test_no_answer_is_an_error(reply: str) -> None:
    """Whatever comes back, few notes remain."""
    for text in (reply, f"LEARNED: {reply}", GOOD * 100 + reply):
        assert len(read_reply(text)) <= 5


def asked(tmp_path: Path, steps: list[Any], **more: Any) -> tuple[tuple[Note, ...], Usage]:
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
    notes, used = asked(tmp_path, [{"if_prompt": found}])
    assert len(notes) == 2
    assert (used.total_tokens, used.cost_usd) == (1_000, 0.01)
    assert (tmp_path / "1.learn.log").exists()


def test_what_it_does_happens_elsewhere(tmp_path: Path) -> None:
    """Files it writes on the way are not in the project."""
    asked(tmp_path, [{"write": {"owned.txt": "hello"}}, {"say": GOOD}])
    assert [path.name for path in (tmp_path / "project").iterdir()] == ["script.json"]


def test_an_agent_that_fails_teaches_nothing(tmp_path: Path) -> None:
    """No answer, no learning, no exception."""
    notes, _ = asked(tmp_path, [{"fatal": "authentication_failed"}])
    assert notes == ()
