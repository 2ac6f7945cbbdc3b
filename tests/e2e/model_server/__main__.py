"""Play a script for people: start the server, say how to point a CLI at it, show what comes in.

python -m tests.e2e.model_server SCRIPT.json [--root DIR] [--port N]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tests.e2e.model_server.script import BadScript, Scene, scenes_of
from tests.e2e.model_server.server import ModelServer
from tests.e2e.model_server.stage import Exchange


def main() -> int:
    """Run until interrupted."""
    options = _options()
    try:
        scenes = scenes_of(json.loads(options.script.read_text("utf-8")))
    except (OSError, ValueError) as error:
        kind = "" if isinstance(error, BadScript) else "cannot be read: "
        sys.stderr.write(f"error: {options.script}: {kind}{error}\n")
        return 65
    with ModelServer(root=options.root.resolve(), port=options.port) as server:
        server.stage.play(*scenes)
        _print(_welcome(server, scenes))
        _report(server)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.model_server")
    parser.add_argument("script", type=Path, help="turns or scenes as JSON, see script.py")
    parser.add_argument("--root", type=Path, default=Path(), help="where relative paths begin")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args()


def _welcome(server: ModelServer, scenes: tuple[Scene, ...]) -> str:
    turns = sum(len(scene.turns) for scene in scenes)
    return (
        f"{turns} turns at {server.url}, Ctrl+C ends\n"
        f"claude:   ANTHROPIC_BASE_URL={server.url} ANTHROPIC_API_KEY=sk-ant-scripted\n"
        f'codex:    a [model_providers.x] with base_url = "{server.url}/v1"\n'
        f"gemini:   GOOGLE_GEMINI_BASE_URL={server.url} GEMINI_API_KEY=scripted\n"
        f'opencode: a provider with "baseURL": "{server.url}/v1"'
    )


def _report(server: ModelServer) -> None:
    shown = 0
    try:
        while True:
            settled = [it for it in server.stage.exchanges[shown:] if it.settled]
            for exchange in settled:
                _print(_line(exchange))
            shown += len(settled)
            time.sleep(0.1)
    except KeyboardInterrupt:
        _print(f"billed: {server.billed}")


def _line(exchange: Exchange) -> str:
    end = "abandoned" if exchange.abandoned else f"{exchange.status or 'cut'}"
    return (
        f"{exchange.number:4} {exchange.path} {exchange.question.model} → {end} {exchange.billed}"
    )


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
