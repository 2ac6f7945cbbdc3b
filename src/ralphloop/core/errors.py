"""Errors in an agent's words or a check's output, and the signature that names them.

Two stages, each with a home of its own:

1. `error_lines`: is this line an error at all?  (`error_lines.py`)
2. `error_signature`: which error is it?  (`signatures.py`)

The breaker counts equal signatures, so the same failure at another line, time or place must give
the same signature, and two failures a person would call different must not.  Own status blocks
are the caller's to cut out: their RECOMMENDATION may quote anything.

Both stages are imported where they are used: compiling what they look for takes longer than all
the rest of the core, and a command that reads no answer should not pay for it.
"""

from __future__ import annotations


def error_lines(text: str) -> tuple[str, ...]:
    """The lines of a text that are errors, undecorated, in order, each once."""
    from ralphloop.core.error_lines import find_error_lines

    return tuple(line.text for line in find_error_lines(text))


def error_signature(text: str) -> str | None:
    """What fails in this text, without places, numbers and times; None: nothing does."""
    from ralphloop.core.error_lines import find_error_lines
    from ralphloop.core.signatures import signature_of

    return signature_of(find_error_lines(text))
