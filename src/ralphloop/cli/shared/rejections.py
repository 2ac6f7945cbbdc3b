"""What becomes of a story that something stands on: told on a terminal, and asked there."""

from ralphloop.cli import output
from ralphloop.loop.rejecting import NotAlone, RejectionChoice, StandsOnIt

_KEYS = {
    "t": RejectionChoice.TOGETHER,
    "f": RejectionChoice.FOLLOW_UP,
    "k": RejectionChoice.KEEP,
    "q": RejectionChoice.KEEP,
}
_ALL = "[t]ogether: send all of it back  [f]ollow-up: a story of its own  [k]eep"
_NOTHING_OF_OURS = "[f]ollow-up: a story of its own  [k]eep"


def ask_what_becomes(found: StandsOnIt) -> RejectionChoice:
    """A person's choice, by one key; the end of input keeps everything."""
    output.emit_lines(_shown(found))
    known = "tfkq" if found.dependents else "fkq"
    keys = _ALL if found.dependents else _NOTHING_OF_OURS
    return _KEYS[output.key(f"    {keys} ", known)]


def refuse(found: StandsOnIt) -> RejectionChoice:
    """Nobody is there to choose: raise with everything that stands on it."""
    first, *rest = found.lines()
    words = "\n".join([first, *(f"  - {line}" for line in rest)])
    step = "Say what is to become of it: --with-dependents, --follow-up or --keep."
    raise NotAlone(words, step)


def _shown(found: StandsOnIt) -> list[str]:
    first, *rest = found.lines()
    lines = [*output.row("!", first, "yellow", width=4)]
    for line in rest:
        lines += output.row("  -", line, width=4)
    return lines
