"""The reviewers of the guide, taken out of it and run: real CLIs doubt a story, and hold nothing up."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.e2e.clis import CLIS, ENVIRONMENTS
from tests.e2e.conftest import World
from tests.e2e.model_server import ALWAYS, ModelServer, fail, say, shell, use, write
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story

pytestmark = pytest.mark.e2e

GUIDE = Path(__file__).parents[2] / "docs/guides/proof.md"
AGENT = """
write("calc.py", open("calc.py").read() + "\\n\\ndef halve(x):\\n    return x // 2\\n")
write("tests/test_halve.py", "import unittest, calc\\nclass H(unittest.TestCase):\\n    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n")
done(words=f"Done, start {START}.")
"""
CRITERION = "halve rounds to the nearest"


def script(name: str) -> str:
    """The one of the guide that calls this CLI."""
    scripts = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```$", GUIDE.read_text(), re.S | re.M)
    [found] = [str(text) for text in scripts if f"$({name} " in text]
    return found


def doubted(
    name: str,
    tmp_path: Path,
    server: ModelServer,
    world: World,
    *,
    there: bool = True,
    reviewer: str = "",
    agent: str = AGENT,
) -> Sandbox:
    """A project with the reviewer of the guide."""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("US-1") | {"acceptanceCriteria": [CRITERION]}],
        checks=UNITTEST,
        files={
            "calc.py": CALC,
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            "review.sh": script(name),
            **IGNORED,
        },
    )
    (box.root / "review.sh").chmod(0o755)
    config = box.root / "ralph.toml"
    line = f"doubt = {json.dumps([reviewer or ['./review.sh']])}\n"
    told = config.read_text().replace("[limits]", f"{line}[limits]", 1)
    if reviewer:  # an agent gets a key only where it is passed on
        told = told.replace("[checks]", 'pass_env = ["ANTHROPIC_API_KEY"]\n[checks]', 1)
    config.write_text(told)
    box.git("commit", "-qam", "doubt")
    own = ENVIRONMENTS[name](server.url, world.home)
    cli = [str(CLIS[name].program.parent)] if there else []
    elsewhere = [
        place
        for place in os.environ["PATH"].split(os.pathsep)
        if not shutil.which(name, path=place)
    ]
    box.env |= {**own, "PATH": os.pathsep.join([*cli, *elsewhere])}
    return box


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_it_doubts_once_and_is_content_then(
    tmp_path: Path, server: ModelServer, world: World, name: str
) -> None:
    """It is given the criteria and the change; its words reach the agent, and its OK lets it pass."""
    box = doubted(name, tmp_path, server, world)
    server.play(say("halve(3) is 1: it does not round to the nearest."), say("OK"))
    done = box.run("--max-iterations", "2", timeout=200)
    assert done.code == 0, done.text
    first, second = (record.verdict for record in box.records())
    assert not first.passed
    assert "it does not round to the nearest" in " ".join(first.asked)
    assert "it does not round to the nearest" in box.prompt(2)
    assert second.grade is Grade.VERIFIED, second
    for request in server.requests:
        assert CRITERION in request.prompt
        assert "+def halve(x):" in request.prompt


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("there", [True, False], ids=["refused", "missing"])
def test_one_that_cannot_answer_is_no_obstacle(
    tmp_path: Path, server: ModelServer, world: World, name: str, *, there: bool
) -> None:
    """A request that is refused and a program that is not there leave the story what it is."""
    box = doubted(name, tmp_path, server, world, there=there)
    if there:
        server.play(fail(400, times=ALWAYS))
    done = box.run("--max-iterations", "2", timeout=200)
    assert done.code == 0, done.text
    assert (box.starts, box.records()[-1].verdict.grade) == (1, Grade.VERIFIED)
    assert bool(server.requests) is there


HIDES = "write('.gitattributes', '*.py -diff\\n')\n"
PADS = "write('aaa.txt', ''.join(f'{n} padding\\n' for n in range(40_000)))\n"


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_second_model_is_one_setting(
    tmp_path: Path, server: ModelServer, world: World, name: str
) -> None:
    """`@name` only reads, is given every line whatever `.gitattributes` says, and doubts once."""
    box = doubted(name, tmp_path, server, world, reviewer=f"@{name}", agent=HIDES + AGENT)
    tries = write("mine.txt", "x") if name == "claude" else shell("echo x > mine.txt")
    server.play(
        use(tries),  # a reviewer that would write is refused by its own flags
        say("DOUBT: 1: calc.py line 6, halve(3) is 1"),
        say("OK: 1"),
    )
    done = box.run("--max-iterations", "2", timeout=200)
    assert done.code == 0, done.text
    assert not (box.root / "mine.txt").exists()
    first, second = (record.verdict for record in box.records())
    assert not first.passed
    assert "halve(3) is 1" in box.prompt(2)
    assert second.grade is Grade.VERIFIED, second
    assert CRITERION in server.requests[0].prompt
    assert "+def halve(x):" in server.requests[0].prompt
    shown = " ".join(box.ralph("stats").out.split())
    assert f"@{name}: asked 2 times; 1 doubt; 1 put to the agent, 1 led to a change" in shown
    told = json.loads(box.ralph("stats", "--json").out)["doubters"][f"@{name}"]
    assert told["tokens"] > 0
    assert box.status()["cost_usd"] == pytest.approx(told["cost_usd"])


def test_a_long_change_is_given_to_a_second_model_in_parts(
    tmp_path: Path, server: ModelServer, world: World
) -> None:
    """Each part is asked about; the first and the last line of the change are among them."""
    box = doubted("claude", tmp_path, server, world, reviewer="@claude", agent=PADS + AGENT)
    server.play(say("OK: 1", times=ALWAYS))
    done = box.run("--max-iterations", "1", timeout=200)
    assert done.code == 0, done.text
    asked = [request.prompt for request in server.requests]
    assert len(asked) > 1
    for line in ("+0 padding", "+39999 padding", "+def halve(x):"):
        assert any(line in prompt for prompt in asked)
