"""What the agent itself said, and which of its status blocks counts.

Only the main agent's own messages may come in here: no tool output, no subagent, no echo of the
prompt.  The last block wins; its EXIT_SIGNAL is believed only in the final message.  Text is kept
with its head and its tail, and a long message is searched piece by piece, so memory stays flat.
"""

from ralphloop.text.status_block import MAX_BLOCK, StatusBlock, find_block

HEAD = 64 * 1024
TAIL = 192 * 1024

_PIECE = 1 << 20  # searched for a block at once: a huge message must not be copied whole
_MANY_PIECES = 1024
_SIDES = ("│", "┃", "║")  # of a frame that some programs draw around an answer


class BoundedText:
    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self.length = 0
        self._room = head
        self._most = tail
        self._head: list[str] = []
        self._tail: list[str] = []
        self._size = 0  # of the tail

    def add(self, text: str) -> None:
        self.length += len(text)
        if self._room:
            self._head.append(text[: self._room])
            text, self._room = text[self._room :], max(0, self._room - len(text))
        if not text:
            return
        self._tail.append(text[-self._most :])
        self._size += len(self._tail[-1])
        while self._size - len(self._tail[0]) >= self._most:
            self._size -= len(self._tail.pop(0))
        if len(self._tail) > _MANY_PIECES:
            self._tail = ["".join(self._tail)]

    def value(self) -> str:
        """The text, with a line in the middle that says how much was left out."""
        head = "".join(self._head)
        tail = "".join(self._tail)[-self._most :]
        left_out = self.length - len(head) - len(tail)
        if left_out <= 0:
            return head + tail
        return f"{head}\n[… {left_out} characters left out …]\n{tail}"


class OwnWords:
    def __init__(self) -> None:
        self.chars = 0
        self.status: StatusBlock | None = None
        self.final_text: str | None = None
        self._text = BoundedText()
        self._messages = 0
        self._status_in = 0  # number of the message the block stands in
        self._final: int | None = None
        self._open: BoundedText | None = None
        self._unread: list[str] = []  # of the open message, not yet searched for a block
        self._unread_size = 0
        self._last = ""
        self._last_number: int | None = None

    @property
    def text(self) -> str:
        return self._text.value()

    @property
    def status_is_final(self) -> bool:
        return self.status is not None and self._status_in == self._final

    @property
    def in_message(self) -> bool:
        return self._open is not None

    def add(self, piece: str) -> None:
        """Say the next piece of a message that goes on until `end`."""
        if self._open is None:
            self._messages += 1
            if self._messages > 1:
                self._text.add("\n\n")
            self._open = BoundedText()
        self._open.add(piece)
        self._text.add(piece)
        self.chars += len(piece)
        self._unread.append(piece)
        self._unread_size += len(piece)
        if self._unread_size > _PIECE:
            text = "".join(self._unread)
            self._search(f"{text}\n…")  # more follows: a block that must be the end is not
            self._unread = ["…", text[-MAX_BLOCK:]]  # it may begin within a line
            self._unread_size = MAX_BLOCK

    def end(self) -> str:
        if self._open is not None:
            self._last = self._open.value()
            self._last_number = self._messages
            self._open = None
            self._search("".join(self._unread))
            self._unread = []
            self._unread_size = 0
        return self._last

    def say(self, text: str) -> None:
        self.end()
        for start in range(0, len(text) or 1, _PIECE):
            self.add(text[start : start + _PIECE])
        self.end()

    def last_is_final(self) -> None:
        """The last message was the final one; without any message the final text is empty."""
        self.final_text = self.end()
        self._final = self._last_number

    def forget_last(self) -> None:
        """The last message cannot be the final one any more: work followed it."""
        self.end()
        self._last = ""
        self._last_number = None

    def nothing_is_final(self) -> None:
        """What was final is not any more: the agent went on."""
        self.final_text = None
        self._final = None

    def finish_with(self, text: str) -> None:
        """The final message is `text`, which most often repeats the last one word for word."""
        self.end()
        if not text:
            self.forget_last()
        elif _bounded(text).strip() != self._last.strip():
            self.say(text)
        self.last_is_final()

    def finish_with_foreign(self, text: str) -> None:
        """The final text was written by the CLI, not by the agent: shown, never a claim."""
        self.end()
        self.final_text = _bounded(text)
        self._final = None

    def _search(self, text: str) -> None:
        """Note the block of a piece; one that is cut off never replaces a whole one beside it."""
        found = find_block(text)
        if found is None and any(side in text for side in _SIDES):
            found = find_block(_without_frame(text))
        if found and not (found.truncated and self._status_in == self._messages):
            self.status = found
            self._status_in = self._messages


def _without_frame(text: str) -> str:
    """The text without the sides of a frame, which are not the agent's words."""
    lines = []
    for line in text.split("\n"):
        inner = line.strip()
        is_framed = len(inner) > 1 and inner.startswith(_SIDES) and inner.endswith(_SIDES)
        lines.append(inner[1:-1].strip() if is_framed else line)
    return "\n".join(lines)


def _bounded(text: str) -> str:
    kept = BoundedText()
    kept.add(text)
    return kept.value()
