"""Names made from story ids, which are untrusted text of any length and content."""

import hashlib
import unicodedata
from collections.abc import Sequence

from ralphloop.text.plain import LazyRegex

_MAX_SHOWN = 60
_UNSAFE = LazyRegex(r"[^a-z0-9]+")
_NOISE = LazyRegex(r"[\W_]+")


def slug(story_id: str) -> str:
    """A readable name plus 8 hex digits of the id's hash, safe in file names and git refs."""
    text = unicodedata.normalize("NFKD", story_id[:1000]).encode("ascii", "ignore").decode()
    readable = _UNSAFE.sub("-", text.lower())[:40].strip("-")
    digest = hashlib.sha256(story_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable or 'story'}-{digest[:8]}"


def essence(text: str) -> str:
    """The words alone: case, punctuation and spacing tell no two sentences apart."""
    return _NOISE.sub(" ", text.casefold()).strip()


def quoted(text: str) -> str:
    """Text in double quotes on one bounded line, with nothing a terminal could act on."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[:_MAX_SHOWN])
    return f'"{shown}{"…" if len(text) > _MAX_SHOWN else ""}"'


def label(story_id: str) -> str:
    """The id as it is where that is harmless in a sentence, quoted otherwise."""
    harmless = story_id.isprintable() and story_id.strip() and len(story_id) <= _MAX_SHOWN
    return story_id if harmless else quoted(story_id)


def next_id(names: Sequence[str]) -> str:
    """After the last id that ends in a number, in its style."""
    numbered = [(name, len(name) - len(name.rstrip("0123456789"))) for name in names]
    found = [(name[:-size], name[-size:]) for name, size in numbered if size]
    if not found:
        return f"US-{len(names) + 1:03d}"
    prefix, digits = found[-1]
    highest = max(int(number) for head, number in found if head == prefix)
    return f"{prefix}{highest + 1:0{len(digits)}d}"
