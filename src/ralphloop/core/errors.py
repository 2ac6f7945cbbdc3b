"""Errors in an agent's words or a check's output, and the signature that names them.

Two stages, each with a home of its own:

1. `error_lines`: is this line an error at all?  (`error_lines.py`)
2. `error_signature`: which error is it?  (`signatures.py`)

The breaker counts equal signatures, so the same failure at another line, time or place must give
the same signature, and two failures a person would call different must not.  Own status blocks
are the caller's to cut out: their RECOMMENDATION may quote anything.

Both stages are imported where they are used: compiling what they look for takes longer than all
the rest of the core, and neither a command that reads no answer nor an answer that holds nothing
like an error should pay for it.
"""

from __future__ import annotations

from ralphloop.core.patterns import Pattern
from ralphloop.core.text import clean

MAX_TEXT = 100_000

# A superset of what error lines hold; a line without any of it needs no closer look, and a text
# without any such line needs none of what compiles so long.
TRIGGER = Pattern(
    r"err|fail|exception|fatal|panic|denied|not found|no such|undefined|conflict|reject|abort"
    r"|fault|kill|critical|refused|traceback|unresolved|not ok|assert|terminate|curl: |ld: |module"
    r"|[✖✕✗✘×›]|\be: |\.go:|ora-|sqlstate|msg |illegal|directory|exists|exit|timed out|reset by"
    r"|no space|not permitted|in use|broken pipe|busy|read-only|too many|memory|too long|no route"
    r"|unreach|not known|resolution|invalid argument|quota|interpreter|cross-device|eai_|enotfound"
    r"|\*\*\*|\*\* \(|rspec|problem|interrupted|wrong|unable|cannot|can't|could not"
    r"|couldn't|recognized as|deadline exceeded|sudo: "
    r"|\b(?:stop(?:s|ped)|crash\w*|breaks|die[sd]|ends|complains|red|broken|won't|does ?n[o']t)"
    r"[^\n]{0,60}:[*_]{0,3}\s*(?:\n|$)|attempt to|\[emerg|\[alert|\[crit|non-?zero"
    r"|```|~~~|@@ |diff --git|file \"|:\d+:\d+|-->"
)


def error_lines(text: str) -> tuple[str, ...]:
    """The lines of a text that are errors, undecorated, in order, each once."""
    from ralphloop.core.error_lines import find_error_lines

    return tuple(line.text for line in find_error_lines(text))


def error_signature(text: str) -> str | None:
    """What fails in this text, without places, numbers and times; None: nothing does."""
    if not TRIGGER.search(clean(text[-MAX_TEXT:]).lower()):
        return None
    from ralphloop.core.error_lines import find_error_lines
    from ralphloop.core.signatures import signature_of

    return signature_of(find_error_lines(text))
