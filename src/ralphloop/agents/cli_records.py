"""What a CLI wrote down of a conversation: its model, its tokens and its usage windows.

Codex keeps a rollout of every conversation, and Gemini a session file; both grow while the agent
works, though its stream tells of tokens only at its end.  A `Record` follows such a file: each look
reads what was added since, so that a start can be bounded while it runs, and what a killed one cost
is known.  The files are somebody else's: what cannot be read is not there.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.core.model import Usage
from ralphloop.core.totals import Windows, updated
from ralphloop.readers.codex import tokens_of, windows_of
from ralphloop.readers.values import DAMAGES, Document, count_at, document_at, document_of, text_at

_CONVERSATION = re.compile(r"[0-9A-Za-z-]{8,64}")
_MOST_AT_ONCE = 16 << 20
_TELLING_CODEX = (b'"turn_context"', b'"rate_limits"', b'"token_usage_record"', b'"token_count"')
_TELLING_GEMINI = (b'"tokens"',)


def codex_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME") or "/") / ".codex")


class Record:
    """The growing file of one conversation; this one knows of none."""

    telling: tuple[bytes, ...] = ()

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.model = ""
        self.windows = Windows()
        self._file: Path | None = None
        self._read = 0  # bytes of it
        self._rest = b""  # a line that is not whole yet

    @property
    def usage(self) -> Usage:
        """Tokens so far; none where nothing was written down."""
        return Usage()

    def places(self, conversation: str) -> Iterator[Path]:
        """Where such a file may be, newest last."""
        yield from ()

    def take(self, document: Document) -> None:
        """One line of the file."""

    def look(self, conversation: str) -> None:
        """Read what was added since the last look."""
        if not _CONVERSATION.fullmatch(conversation):
            return
        try:
            if self._file is None:
                found = [path for path in self.places(conversation) if path.is_file()]
                if not found:
                    return
                self._file = found[-1]
            with self._file.open("rb") as opened:
                opened.seek(self._read)
                added = opened.read(_MOST_AT_ONCE)
        except OSError:
            return
        self._read += len(added)
        *lines, self._rest = (self._rest + added).split(b"\n")
        for line in lines:
            if any(word in line for word in self.telling):
                try:
                    value = msgspec.json.decode(line)
                except DAMAGES:
                    continue  # cut short: what was found stands
                self.take(document_of(value))


class CodexRecord(Record):
    telling = _TELLING_CODEX

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env)
        self._total = Usage()

    @property
    def usage(self) -> Usage:
        return self._total

    def places(self, conversation: str) -> Iterator[Path]:
        sessions = codex_home(self.env) / "sessions"
        yield from sorted(sessions.glob(f"*/*/*/rollout-*-{conversation}.jsonl"))

    def take(self, document: Document) -> None:
        told = document_at(document, "payload")
        self.model = text_at(told, "model") or self.model
        self.windows = updated(self.windows, windows_of(document_at(told, "rate_limits")))
        # The whole conversation's, as a turn reports it after `resume`.
        total = document_at(told, "thread_token_usage")
        total = total or document_at(document_at(told, "info"), "total_token_usage")
        if total:
            self._total = tokens_of(total)


class GeminiRecord(Record):
    telling = _TELLING_GEMINI

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env)
        self._messages: dict[str, Usage] = {}  # one is written anew when it grows

    @property
    def usage(self) -> Usage:
        total = sum(self._messages.values(), Usage())
        return msgspec.structs.replace(total, cumulative=True)

    def places(self, conversation: str) -> Iterator[Path]:
        chats = Path(self.env.get("HOME") or "/") / ".gemini" / "tmp"
        name = f"session-*-{conversation[:8]}.jsonl"
        yield from sorted(chats.glob(f"*/chats/{name}"))

    def take(self, document: Document) -> None:
        tokens = document_at(document, "tokens")
        if not tokens:
            return
        self.model = text_at(document, "model") or self.model
        cached = count_at(tokens, "cached")
        self._messages[text_at(document, "id")] = Usage(
            input_tokens=max(0, count_at(tokens, "input") - cached) + count_at(tokens, "tool"),
            output_tokens=count_at(tokens, "output") + count_at(tokens, "thoughts"),
            cache_read_tokens=cached,
        )


def record_of(reader: str, env: Mapping[str, str]) -> Record:
    """The record that the CLI behind this reader keeps."""
    kinds: dict[str, type[Record]] = {"codex": CodexRecord, "gemini": GeminiRecord}
    return kinds.get(reader, Record)(env)
