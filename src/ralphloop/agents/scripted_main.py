"""The scripted agent as a program: `python -m ralphloop.agents.scripted_main SCRIPT`.

It knows its story by `RALPH_STORY_ID`, and counts its starts in the file `RALPH_SCRIPT_STATE`.  Its
events carry what the real ones carry as far as readers look at it, so that a scripted run goes
through the same code as a real one, cost and limits included.
"""

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import msgspec

from ralphloop.agents.script import (
    STATE_VARIABLE,
    AnyStep,
    Condition,
    LimitFields,
    SpawnFields,
    StatusFields,
    UsageFields,
    deed,
    load_script,
    signal_named,
)
from ralphloop.errors import InputError, RalphError, UsageError
from ralphloop.text.durations import parse_duration
from ralphloop.text.status_block import render

_PATIENCE_S = 600
_FATAL = {
    "authentication_failed": ("Invalid API key · Please run /login", 401),
    "billing_error": ("Credit balance is too low", 400),
    "model_not_found": ("There's an issue with the selected model. It may not exist.", 404),
}
_LIMIT_NAMES = {"five_hour": "5-hour", "seven_day": "weekly"}


def main(given: Sequence[str]) -> int:
    """Play one start; returns the exit code."""
    try:
        if len(given) not in {1, 3} or given[1:2] not in ([], ["--session-id"], ["--resume"]):
            raise UsageError("usage: scripted_main SCRIPT [--session-id ID | --resume ID]")
        path = Path(given[0])
        session = given[2] if len(given) == 3 else str(uuid.uuid4())
        script = load_script(path)
        story = os.environ.get("RALPH_STORY_ID", "")
        steps = script.steps(story, _count_start(story))
        if steps is None:
            raise InputError(f"has no entry for story {story!r}", place=path.name)
    except RalphError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return int(error.exit_code)
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    return Player(session, prompt, plain=script.format == "text").play(steps)


def _count_start(story: str) -> int:
    if not (place := os.environ.get(STATE_VARIABLE)):
        return 0
    path = Path(place)
    try:
        counts = msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except (FileNotFoundError, msgspec.DecodeError):
        counts = {}
    earlier = counts.get(story, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(msgspec.json.encode({**counts, story: earlier + 1}))
    fresh.replace(path)
    return earlier


class Player:
    """Does what the steps say: the word `write` is the method `do_write`."""

    def __init__(self, session: str, prompt: str, *, plain: bool) -> None:
        self._session = session
        self._prompt = prompt
        self._plain = plain
        self._message = self._last_words = ""
        self._turns = 0
        self._paid: list[UsageFields] = []
        self._denials: list[dict[str, object]] = []

    def play(self, steps: Sequence[AnyStep]) -> int:
        """All steps, then the result; `SystemExit` where a step ends it."""
        try:
            self._event("system", subtype="init", model="scripted")
            self._take(steps)
            self._finish_message()
            self._result("success", "completed", is_error=False, result=self._last_words)
        except KeyboardInterrupt:
            self._result("error_during_execution", "aborted_streaming", is_error=True)
            return 130 if self._plain else 0
        return 0

    def _take(self, steps: Sequence[AnyStep]) -> None:
        for step in steps:
            word, value = deed(step)
            if word not in {"status", "if_prompt"}:
                self._finish_message()
            getattr(self, f"do_{word}")(value)

    def do_say(self, text: str) -> None:
        self._message = text

    def do_status(self, fields: StatusFields) -> None:
        block = render(fields)
        self._message = f"{self._message.rstrip()}\n\n{block}" if self._message else block

    def _finish_message(self) -> None:
        if not self._message:
            return
        self._last_words = self._message
        self._message = ""
        self._text(self._last_words.rstrip("\n"))
        self._assistant({"type": "text", "text": self._last_words})

    def do_print(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def do_stderr(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def do_if_prompt(self, condition: Condition) -> None:
        found = condition.contains in self._prompt
        self._take(condition.then if found else condition.otherwise)

    def do_usage(self, usage: UsageFields) -> None:
        self._paid.append(usage)

    def do_write(self, files: Mapping[str, str], mode: str = "w") -> None:
        for name, content in files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open(mode, encoding="utf-8") as file:
                file.write(content)
            self._tool("Write", {"file_path": name}, f"wrote {name}")

    def do_append(self, files: Mapping[str, str]) -> None:
        self.do_write(files, "a")

    def do_delete(self, names: Sequence[str]) -> None:
        for name in names:
            path = Path(name)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            self._tool("Bash", {"command": f"rm -r {name}"}, "")

    def do_run(self, argv: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                argv, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, timeout=_PATIENCE_S, check=False
            )
            output = done.stdout.decode("utf-8", "replace")
            code = done.returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            output = str(error)
            code = 127
        shown = output if code == 0 else f"{output}\nExit code {code}"
        self._tool("Bash", {"command": " ".join(argv)}, shown, ok=code == 0)

    def do_spawn(self, given: Sequence[str] | SpawnFields) -> None:
        spec = given if isinstance(given, SpawnFields) else SpawnFields(argv=list(given))
        if spec.daemon:
            # Wait for the one in between, so that the daemon is nobody's child when we go on.
            if pid := os.fork():
                os.waitpid(pid, 0)
                return
            os.setsid()
        output = None if spec.hold_output else DEVNULL
        env = {"PATH": os.environ.get("PATH", "")} if spec.clear_env else None
        subprocess.Popen(spec.argv, stdin=DEVNULL, stdout=output, stderr=output, env=env)
        if spec.daemon:
            os._exit(0)

    def do_deny(self, tool: str) -> None:
        self._text(f"{tool}: permission denied")
        self._denials.append({"tool_name": tool, "tool_use_id": uuid.uuid4().hex, "tool_input": {}})
        self._tool(tool, {}, "Permission to use this tool has been denied.", ok=False)

    def do_sleep(self, duration: str | float) -> None:
        time.sleep(parse_duration(duration))

    def do_exit(self, code: int) -> None:
        raise SystemExit(code)

    def do_crash(self, name: str) -> None:
        os.kill(os.getpid(), signal_named(name))
        time.sleep(60)  # a signal that does not end us at once will

    def do_hang(self, how: str) -> None:
        while True:
            if how == "printing":
                self.do_print("still here\n")
                time.sleep(0.05)
            elif how == "busy":
                sum(range(100_000))
            else:
                time.sleep(3600)

    def do_usage_limit(self, limit: LimitFields) -> None:
        resets_at = int(time.time() + parse_duration(limit.resets_in)) + 1
        kind = limit.kind
        info = {"status": "rejected", "resetsAt": resets_at, "rateLimitType": kind}
        self._event("rate_limit_event", rate_limit_info=info)
        clock = datetime.fromtimestamp(resets_at, UTC).strftime("%I:%M%p").lstrip("0").lower()
        words = f"You've hit your {_LIMIT_NAMES.get(kind, kind)} limit · resets {clock} (UTC)"
        self._fail(words, "rate_limit", 429, api_error="usage_limit_reached")

    def do_transient(self, status: int) -> None:
        error = "overloaded" if status == 529 else "server_error"
        self._retry(error, status)
        self._fail(f"API Error: {status} the service is overloaded", error, status)

    def do_fatal(self, error: str) -> None:
        words, status = _FATAL[error]
        self._retry(error, status)
        self._fail(words, error, status)

    def _fail(self, words: str, error: str, status: int, **more: object) -> None:
        failure: dict[str, object] = {"api_error_status": status, **more}
        self._text(words)
        said = {"model": "<synthetic>", "content": [{"type": "text", "text": words}]}
        self._event("assistant", message=said, error=error, is_api_error_message=True, **failure)
        self._result("success", "api_error", is_error=True, result=words, **failure)
        raise SystemExit(1)

    def _text(self, line: str) -> None:
        if self._plain:
            self.do_print(f"{line}\n")

    def _event(self, kind: str, **fields: object) -> None:
        if not self._plain:
            event = {"type": kind, **fields, "session_id": self._session, "uuid": str(uuid.uuid4())}
            self.do_print(msgspec.json.encode(event).decode() + "\n")

    def _assistant(self, content: Mapping[str, object]) -> None:
        self._turns += 1
        self._event("assistant", message={"model": "scripted", "content": [content]})

    def _tool(self, name: str, call: dict[str, str], output: str, *, ok: bool = True) -> None:
        tool_id = f"toolu_{uuid.uuid4().hex[:20]}"
        self._assistant({"type": "tool_use", "id": tool_id, "name": name, "input": call})
        result = {"type": "tool_result", "tool_use_id": tool_id, "content": output}
        self._event("user", message={"content": [{**result, "is_error": not ok}]})

    def _retry(self, error: str, status: int) -> None:
        counted = {"attempt": 1, "max_retries": 1, "error_status": status}
        self._event("system", subtype="api_retry", **counted, error=error)

    def _result(self, subtype: str, reason: str, *, is_error: bool, **fields: object) -> None:
        self._event(
            "result",
            subtype=subtype,
            is_error=is_error,
            terminal_reason=reason,
            num_turns=self._turns,
            total_cost_usd=sum(paid.cost_usd for paid in self._paid),
            usage={
                "input_tokens": sum(paid.input_tokens for paid in self._paid),
                "output_tokens": sum(paid.output_tokens for paid in self._paid),
            },
            permission_denials=self._denials,
            **fields,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
