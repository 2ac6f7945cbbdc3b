"""The smallest MCP server there is: one tool, `ping`, which leaves a file where it was called."""

from __future__ import annotations

import json
import pathlib
import sys

TOOL = {"name": "ping", "description": "Answers.", "inputSchema": {"type": "object"}}


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    """The result of one request."""
    if method == "initialize":
        version = params.get("protocolVersion")
        about = {"name": "ping", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/call":
        pathlib.Path("pinged").touch()
        return {"content": [{"type": "text", "text": "pong"}]}
    return {"tools": [TOOL]} if method == "tools/list" else {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params") or {})
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
        sys.stdout.flush()
