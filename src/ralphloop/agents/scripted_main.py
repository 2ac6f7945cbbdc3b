"""The scripted agent as a program: `python -m ralphloop.agents.scripted_main SCRIPT`.

It reads the prompt, finds out which story it was started for (`RALPH_STORY_ID`) and how often it
was before (counted in the file `RALPH_SCRIPT_STATE`), and plays the steps of that start.  See
`ralphloop.agents.script` for what a script can say.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ralphloop.agents.script import (
    Alone,
    Condition,
    LimitFields,
    SpawnFields,
    StatusFields,
    Step,
    deed,
    load_script,
    signal_named,
)
from ralphloop.agents.script_voice import ClaudeVoice, Voice, put
from ralphloop.errors import InputError, RalphError, UsageError
from ralphloop.text.durations import parse_duration
from ralphloop.text.status import render

STATE_VARIABLE = "RALPH_SCRIPT_STATE"

_COMMAND_PATIENCE_S = 600


class _End(Exception):
    """The start is over, with this exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def main(arguments: Sequence[str] | None = None) -> int:
    """Play one start; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        script_path, session = _understood(given)
        script = load_script(script_path)
        story = os.environ.get("RALPH_STORY_ID", "")
        steps = script.steps(story, _count_start(story))
        if steps is None:
            raise InputError(f"has no entry for story {story!r}", place=script_path.name)
    except RalphError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return int(error.exit_code)
    voice = ClaudeVoice(session) if script.format == "claude" else Voice()
    return Player(voice, sys.stdin.buffer.read().decode("utf-8", "replace")).play(steps)


def _understood(given: list[str]) -> tuple[Path, str]:
    session = str(uuid.uuid4())
    if len(given) == 3 and given[1] in {"--session-id", "--resume"}:
        session = given.pop()
        given.pop()
    if len(given) != 1:
        raise UsageError("usage: scripted_main SCRIPT [--session-id ID | --resume ID]")
    return Path(given[0]), session


def _count_start(story: str) -> int:
    """How often this story was started before; this start is counted."""
    place = os.environ.get(STATE_VARIABLE)
    if not place:
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
    """Does what the steps say."""

    def __init__(self, voice: Voice, prompt: str) -> None:
        self._voice = voice
        self._prompt = prompt
        self._message = ""
        self._actions: Mapping[str, Callable[..., None]] = {
            "say": self._say,
            "status": self._status,
            "print": put,
            "stderr": self._stderr,
            "write": self._write,
            "append": self._append,
            "delete": self._delete,
            "run": self._run,
            "sleep": lambda duration: time.sleep(parse_duration(duration)),
            "usage": voice.pay,
            "deny": voice.deny,
            "exit": self._exit,
            "crash": self._crash,
            "hang": self._hang,
            "spawn": self._spawn,
            "usage_limit": self._usage_limit,
            "transient": lambda status: self._fail(voice.transient, status),
            "fatal": lambda error: self._fail(voice.fatal, error),
            "if_prompt": self._if_prompt,
        }

    def play(self, steps: Sequence[Step | Alone]) -> int:
        """All steps, then the result."""
        try:
            self._voice.begin()
            self._take(steps)
            self._finish_message()
            self._voice.result()
        except _End as end:
            return end.exit_code
        except KeyboardInterrupt:
            return self._voice.interrupted()
        return 0

    def _take(self, steps: Sequence[Step | Alone]) -> None:
        for step in steps:
            word, value = deed(step)
            if word not in {"status", "if_prompt"}:
                self._finish_message()
            self._actions[word](value)

    # --- words ---

    def _say(self, text: str) -> None:
        self._message = text

    def _status(self, fields: StatusFields) -> None:
        block = render(fields)
        self._message = f"{self._message.rstrip()}\n\n{block}" if self._message else block

    def _finish_message(self) -> None:
        if self._message:
            self._voice.say(self._message)
            self._message = ""

    def _stderr(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def _if_prompt(self, condition: Condition) -> None:
        found = condition.contains in self._prompt
        self._take(condition.then if found else condition.otherwise)

    # --- deeds ---

    def _write(self, files: Mapping[str, str], mode: str = "w") -> None:
        for name, content in files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open(mode, encoding="utf-8") as file:
                file.write(content)
            self._voice.tool("Write", {"file_path": name}, f"wrote {name}", ok=True)

    def _append(self, files: Mapping[str, str]) -> None:
        self._write(files, "a")

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            path = Path(name)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            self._voice.tool("Bash", {"command": f"rm -r {name}"}, "", ok=True)

    def _run(self, argv: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_COMMAND_PATIENCE_S,
                check=False,
            )
            output, code = done.stdout.decode("utf-8", "replace"), done.returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            output, code = str(error), 127
        shown = output if code == 0 else f"{output}\nExit code {code}"
        self._voice.tool("Bash", {"command": " ".join(argv)}, shown, ok=code == 0)

    def _spawn(self, given: Sequence[str] | SpawnFields) -> None:
        spec = given if isinstance(given, SpawnFields) else SpawnFields(argv=list(given))
        if spec.daemon:
            # Wait for the one in between, so that the daemon is nobody's child when we go on.
            if pid := os.fork():
                os.waitpid(pid, 0)
                return
            os.setsid()
        subprocess.Popen(
            spec.argv,
            stdin=subprocess.DEVNULL,
            stdout=None if spec.hold_output else subprocess.DEVNULL,
            stderr=None if spec.hold_output else subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", "")} if spec.clear_env else None,
        )
        if spec.daemon:
            os._exit(0)

    # --- ends ---

    def _exit(self, code: int) -> None:
        raise _End(code)

    def _crash(self, name: str) -> None:
        os.kill(os.getpid(), signal_named(name))
        time.sleep(60)  # a signal that does not end us at once will

    def _hang(self, how: str) -> None:
        while True:
            if how == "printing":
                put("still here\n")
                time.sleep(0.05)
            elif how == "busy":
                sum(range(100_000))
            else:
                time.sleep(3600)

    def _usage_limit(self, limit: LimitFields) -> None:
        resets_at = int(time.time() + parse_duration(limit.resets_in)) + 1
        self._voice.usage_limit(resets_at, limit.kind)
        raise _End(1)

    def _fail(self, speak: Callable[..., None], value: object) -> None:
        speak(value)
        raise _End(1)


if __name__ == "__main__":
    sys.exit(main())
