"""A file of keys that an agent reads and repeats is kept nowhere: in the checkout and in lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import sandbox

pytestmark = pytest.mark.attack

AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "zEXAMPLEKEY"
LINEAR = "lin" + "_api_" + "q7Zk2Lm9Np4Rt8Vw1Xy5Bd6Fh0Jc3GsQ7zK2lM9n"
SECRETS = (AWS, LINEAR)
SAYS = f"""
line = "aws_secret_access_key = {AWS}"
more = "the tracker's key is {LINEAR}"
print(line + "\\n" + more, file=sys.stderr)
write("app.py")
said = "Done.\\n[default]\\n" + line + "\\n" + more + "\\nLEARNED: the profile wants " + line
says(said)
result(said + "\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\nTASKS_COMPLETED_THIS_LOOP: 1\\nEXIT_SIGNAL: true\\n"
       "RECOMMENDATION: keep " + line + "\\n---END_RALPH_STATUS---")
"""


@pytest.mark.parametrize("lanes", [0, 2])
def test_a_file_of_credentials_that_is_read_aloud_is_kept_nowhere(
    tmp_path: Path, lanes: int
) -> None:
    """Neither transcripts, journal, reports and terminal, nor progress.txt and commits hold it."""
    box = sandbox(tmp_path, SAYS, checks=[["true"]], output="claude")
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("enabled = false", 'memory = "CLAUDE.md"'))
    box.git("commit", "-qam", "learn")
    done = box.run("--lanes", str(lanes))
    assert done.code == 0, told(done)
    kept = [path.read_bytes() for path in box.root.rglob("*") if path.is_file()]
    logged = box.git("log", "--all", "-p", "--format=%B").encode()
    everything = b"\n".join([*kept, logged, done.text.encode()])
    assert b"[redacted]" in everything
    assert not [secret for secret in SECRETS if secret.encode() in everything]
