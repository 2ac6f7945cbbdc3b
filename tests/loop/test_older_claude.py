"""A Claude Code that does not know our newest flags is started without them, and that is said."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.loop.projects import LIBRARY, Sandbox, sandbox

pytestmark = pytest.mark.tool("bwrap", optional=True)
OLD = ("--include-partial-messages", "--max-budget-usd", "--setting-sources", "--settings")
PROGRAM = """\
#!{python}
import os, sys
if sys.argv[1:2] == ["--version"]: print("2.0.76 (Claude Code)"); sys.exit()
if "--help" in sys.argv:
    open(os.environ["TEST_STATE"] + "/asked", "a").write("x")
    for flag in {flags} + ["--output-format", "--model"]: print("  " + flag + " <it>   Does it")
    sys.exit()
for flag in sys.argv[1:]:
    if flag.startswith("--p") and flag not in {flags}: sys.exit("error: unknown option " + flag)
{library}
write("argv-" + str(START), sys.argv)
write(STORY + ".txt")
says("The story is complete.")
result("---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---")
"""


def with_claude(tmp_path: Path, *flags: str, safety: str = "moderate") -> Sandbox:
    """Two stories for a claude on PATH that knows these flags."""
    box = sandbox(tmp_path, "", stories=2, checks=[["true"]])
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text(PROGRAM.format(python=sys.executable, library=LIBRARY, flags=list(flags)))
    program.chmod(0o755)
    config = box.root / "ralph.toml"
    named = f'name = "claude"\nsafety = "{safety}"'
    config.write_text(config.read_text().replace('name = "command"', named))
    box.git("commit", "-qam", "claude")
    box.env["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return box


def test_an_unknown_flag_is_left_out_and_said(tmp_path: Path) -> None:
    """Both stories are done, the program is asked once, and what follows is told before."""
    box = with_claude(tmp_path, *OLD)
    done = box.run()
    assert done.code == 0, done.text
    assert box.starts == 2
    assert (box.state / "asked").read_text() == "x"
    argv = (box.root / "argv-2").read_text()
    assert "--permission-prompts" not in argv
    assert "--settings" in argv
    assert "does not know --permission-prompts: " in done.text
    doctor = box.ralph("doctor")
    assert doctor.code == 0, doctor.text
    assert "does not know --permission-prompts: " in doctor.text
    assert "All is well" not in doctor.text


def test_a_flag_that_is_known_is_used(tmp_path: Path) -> None:
    """With the flag in its help nothing is left out and nothing is said."""
    box = with_claude(tmp_path, *OLD, "--permission-prompts")
    done = box.run()
    assert done.code == 0, done.text
    assert "--permission-prompts" in (box.root / "argv-1").read_text()
    assert "does not know" not in done.text + box.ralph("doctor").text


@pytest.mark.parametrize("safety", ["moderate", "strict"])
def test_safety_that_cannot_be_kept_stops_before_the_first_start(
    tmp_path: Path, safety: str
) -> None:
    """Without --settings there is no such level; `minimal` would be another choice."""
    box = with_claude(tmp_path, "--max-budget-usd", safety=safety)
    done = box.run(env={"IS_SANDBOX": "1"})
    assert done.code == 69, done.text
    assert box.starts == 0
    assert f'safety = "{safety}" needs --settings' in done.text
    assert box.ralph("doctor", env={"IS_SANDBOX": "1"}).code == 69
