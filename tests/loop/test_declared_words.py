"""Agents that do not read their prompt from stdin, and what they leave lying about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.projects import Sandbox, sandbox

GREEN = [["test", "-d", "."]]
AGENT = """
told = open(sys.argv[-1]).read() if {by_file} else sys.argv[-1]
assert PROMPT == "", PROMPT
assert "Your story" in told, told
write(f"{{STORY}}.txt", START)
write(".acme.history.md", told)
write(".acme.cache/db", "x")
done()
"""
TOML = """\
name = "acme"
program = {python}
reader = "text"
start = ["-S", {agent}, "{word}"]
litter = [".acme*"]

[safety]
moderate = []
"""


def declared(tmp_path: Path, word: str) -> Sandbox:
    """A project whose agent is a file in agents.d."""
    box = sandbox(tmp_path, AGENT.format(by_file=word == "{prompt_file}"), checks=GREEN)
    settings = box.root / "ralph.toml"
    lines = settings.read_text().splitlines()
    command = next(line for line in lines if line.startswith("command ="))
    python, _, agent = command.partition("[")[2].rstrip("]").split(", ")
    (box.root / "agents.d").mkdir()
    text = TOML.replace("{python}", python).replace("{agent}", agent).replace("{word}", word)
    (box.root / "agents.d" / "acme.toml").write_text(text)
    kept = [line for line in lines if not line.startswith(("command =", "format"))]
    settings.write_text("\n".join(kept).replace('"command"', '"acme"') + "\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "agent")
    return box


@pytest.mark.parametrize("lanes", ["0", "2"])
@pytest.mark.parametrize("word", ["{prompt}", "{prompt_file}"])
def test_a_prompt_may_be_a_word_or_a_file(tmp_path: Path, word: str, lanes: str) -> None:
    """The agent gets the whole prompt, nothing on stdin, and its litter is no part of the work."""
    box = declared(tmp_path, word)
    done = box.run("--lanes", lanes)
    assert done.code == 0, done.text
    assert "1 file changed" in done.text
    committed = box.git("show", "--name-only", "--format=", "HEAD").split()
    assert "US-1.txt" in committed
    assert not [name for name in committed if name.startswith(".acme")]
    assert (box.root / ".acme.history.md").exists() is (lanes == "0")


def test_an_agent_named_on_the_command_line_is_trusted_by_its_name(tmp_path: Path) -> None:
    """What the error says to do is what helps: `ralph trust --agent NAME`."""
    box = declared(tmp_path, "{prompt}")
    settings = box.root / "ralph.toml"
    settings.write_text("[learning]\nenabled = false\n")
    box.git("commit", "-qam", "another agent")
    box.env |= {"RALPH_TRUST": "", "XDG_STATE_HOME": str(tmp_path / "trust")}
    asked = ("run", "--agent", "acme", "--max-iterations", "1")
    refused = box.ralph(*asked)
    assert refused.code == 77, refused.text
    assert "ralph trust --agent acme" in refused.text
    assert "Nothing in this repository" in box.ralph("trust", "--yes").text
    assert "agents.d/acme.toml" in box.ralph("trust", "--agent", "acme", "--yes").text
    assert box.ralph(*asked).code != 77


def test_what_declares_a_reviewer_needs_a_yes_as_well(tmp_path: Path) -> None:
    """A program that is started to doubt is one that the repository names."""
    box = declared(tmp_path, "{prompt}")
    told = '[checks]\ncommands = [["test", "-d", "."]]\ndoubt = ["@acme"]\n'
    (box.root / "ralph.toml").write_text(told)
    shown = box.ralph("trust", "--show").text
    assert 'start = ["-S"' in shown, shown


def test_a_file_that_is_called_otherwise_than_its_agent_is_refused(tmp_path: Path) -> None:
    """A slip in either name would be an agent that nobody finds; the message names both."""
    box = declared(tmp_path, "{prompt}")
    file = box.root / "agents.d" / "acme.toml"
    file.write_text(file.read_text().replace('name = "acme"', 'name = "acmee"'))
    done = box.run()
    assert (done.code, box.starts) == (65, 0), done.text
    assert 'acme.toml: its name is "acmee", and it is looked for as acme' in done.text
