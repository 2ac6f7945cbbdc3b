"""What an agent reads and says of secrets is kept nowhere, through the real command."""

from __future__ import annotations

from pathlib import Path

from tests.guarantees import Measured
from tests.loop.guards import told
from tests.loop.projects import sandbox

KEY_LINE = "MIIEpAIBAAKCAQEA7v2Jp4n8Xq5rT9uW3yB6dF1hJ0kLmN4pR7sT2vZ8cX5eG9iK"
SECRETS = (KEY_LINE[:20], "Tr0ub4dor&3xK9", "s3cretPa55word9", "hunter2x9", "p4ssw0rdXY")
# As Claude Code shows a file: numbered lines, in a tool's result.
READS = f"""
key = ["-----BEGIN RSA PRIVATE KEY-----", *["{KEY_LINE}"] * 4, "-----END RSA PRIVATE KEY-----"]
env = ["DB_PASSWORD=Tr0ub4dor&3xK9", "password: s3cretPa55word9", '{{"password": "hunter2x9"}}',
       "REDIS=redis://:p4ssw0rdXY@cache:6379/0"]
shown = "\\n".join(f"{{n:6}}\\u2192{{line}}" for n, line in enumerate([*key, *env], 1))
event(type="user", session_id="s-1", parent_tool_use_id=None, message={{"role": "user", "content": [
    {{"type": "tool_result", "tool_use_id": "t1", "content": shown}}]}})
print(shown, file=sys.stderr)
write("app.py")
said = "Done with\\n" + "\\n".join(env) + "\\nLEARNED: app.py wants " + env[0]
says(said)
result(said + "\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\nTASKS_COMPLETED_THIS_LOOP: 1\\nEXIT_SIGNAL: true\\n"
       "RECOMMENDATION: keep " + env[1] + "\\n---END_RALPH_STATUS---")
"""


def test_secrets_an_agent_reads_are_kept_nowhere(tmp_path: Path, measured: Measured) -> None:
    """Neither transcripts, journal and reports, nor progress.txt and commits hold any of them."""
    box = sandbox(tmp_path, READS, checks=[["true"]], output="claude")
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("enabled = false", 'memory = "CLAUDE.md"'))
    box.git("commit", "-qam", "learn")
    done = box.run()
    assert done.code == 0, told(done)
    kept = {path: path.read_bytes() for path in box.root.rglob("*") if path.is_file()}
    log = next(data for path, data in kept.items() if path.match(".ralph/transcripts/*/1.log"))
    assert b"[redacted]" in log
    assert b"tool_result" in log
    everything = b"\n".join([*kept.values(), box.git("log", "--format=%B").encode()])
    everything += done.text.encode()
    assert not [secret for secret in SECRETS if secret.encode() in everything]
    measured(sum(secret.encode() in everything for secret in SECRETS))
