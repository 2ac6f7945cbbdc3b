"""Speech told from exhibits, the completion promise, and the bounds that hold for any text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralphloop.text.claims import (
    claims_completion,
    has_promise,
    question_to_person,
    says_already_done,
    says_done,
)
from ralphloop.text.lines import last_paragraph, speech
from tests.timing import assert_linear, repeated

PROMISE = "<promise>COMPLETE</promise>"
BLOCK = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"

KEPT = [
    ("Moved the store.", "Moved the store."),
    ("Moved it.\r\n\r\n\r\nThen slept.", "Moved it.\n\nThen slept."),
    ("\x1b[1mBold\x1b[0m\u00a0words\u200b.", "Bold words."),
    ("- a bullet\n- another", "- a bullet\n- another"),
    ("# Heading\n\nText.", "# Heading\n\nText."),
    ("Ahead.\n" + BLOCK + "\nBehind.", "Ahead.\n\nBehind."),
    ("Ahead.\n\n**---RALPH_STATUS---**\nstatus: complete\n---END_RALPH_STATUS---", "Ahead."),
    ("Ahead.\n---RALPH_STATUS---\nSTATUS: COMPLETE\n\nNo end marker.", "Ahead.\n\nNo end marker."),
    ("Ahead.\n## RALPH_STATUS\nSTATUS: COMPLETE\nEXIT_SIGNAL: true", "Ahead."),
    ("Ahead.\n```python\ndone()\n```\nBehind.", "Ahead.\n\nBehind."),
    ("Ahead.\n~~~~\n```\n~~~\ncode\n~~~~\nBehind.", "Ahead.\n\nBehind."),
    ("- item\n  ```\n  done\n  ```\n- next", "- item\n\n- next"),
    ("Ahead.\n```\nnever closed", "Ahead."),
    ("said <!-- not said -->\n<!--\nnot\n\nsaid -->\nsaid", "said\n\nsaid"),
    ("> quoted\nsaid", "said"),
    ("| a | b |\n|---|---|\n| 1 | 2 |\nsaid", "said"),
    ("a | b | c\nsaid", "said"),
    ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n\nsaid", "said"),
    ("+added\nsaid", "said"),
    ("     7\tnumbered\nsaid", "said"),
    ("\n    indented code\n\nsaid", "said"),
    ("- item\n\n    continued item\n\nsaid", "- item\n\n    continued item\n\nsaid"),
    ("2026-01-17T22:00:00Z started\nsaid", "said"),
    ("[INFO] started\nsaid", "said"),
    ("$ make test\nsaid", "said"),
    ("---\nsaid\n***", "said"),
    ("", ""),
]

PROMISED = [
    PROMISE,
    f"Moved the templates.\n\n{PROMISE}\n",
    f"Moved.\r\n\r\n  {PROMISE}  \r\n\r\n",
    f"Moved.\n**{PROMISE}**",
    f"Moved.\n\x1b[32m{PROMISE}\x1b[0m",
    f"Moved.\n{PROMISE}\n{BLOCK}",
    f"{BLOCK}\n\n{PROMISE}",
    f"```\n{BLOCK}\n```\n{PROMISE}",
    f"{PROMISE}\n\n```\nmake test\n```",
    f"<promise>NOT YET</promise>\n{PROMISE}",
]

NOT_PROMISED = [
    "",
    "COMPLETE",
    f"I cannot output {PROMISE} yet because the payment tests are red.",
    f"{PROMISE} Moved the templates.",
    f"Moved the templates. {PROMISE}",
    f"{PROMISE}\n\nNext I would look at the mail templates.",
    f"`{PROMISE}`",
    f"```\n{PROMISE}\n```",
    f"~~~\n{PROMISE}\n~~~",
    f"```\nnever closed\n{PROMISE}",
    f"> {PROMISE}",
    f"- {PROMISE}",
    f"+{PROMISE}",
    f"    {PROMISE}",
    f'"{PROMISE}"',
    "<promise>NOT COMPLETE</promise>",
    "<promise>DONE</promise>",
    "<promise>complete</promise>",
    "<promise>COMPLETE",
    f"---RALPH_STATUS---\nSTATUS: COMPLETE\n{PROMISE}\n---END_RALPH_STATUS---",
]

READERS: list[Callable[[str], object]] = [
    speech,
    says_done,
    claims_completion,
    says_already_done,
    has_promise,
    question_to_person,
]


@pytest.mark.parametrize(("text", "spoken"), KEPT)
def test_only_speech_is_left(text: str, spoken: str) -> None:
    """Blocks, code, quotations, tables, diffs, listings and logs are taken out."""
    assert speech(text) == spoken


@pytest.mark.parametrize("text", PROMISED)
def test_a_promise_on_the_last_line_is_one(text: str) -> None:
    """The promise counts as the last line outside fences and status blocks."""
    assert has_promise(text)


@pytest.mark.parametrize("text", NOT_PROMISED)
def test_a_promise_elsewhere_is_none(text: str) -> None:
    """Quoted, negated, fenced, altered and followed promises do not count."""
    assert not has_promise(text)


_WORDS = st.sampled_from(
    "all tests pass the project is not complete done nothing left to do until but however I need "
    "your should US-004 already implemented no changes needed . , ; : ? ! — - ` ``` ~~~ > # | + @@ "
    "' \" ( ) * _ <promise> COMPLETE </promise> ---RALPH_STATUS--- ---END_RALPH_STATUS--- …".split()
)
_SPEECH = st.lists(st.one_of(_WORDS, st.just("\n"), st.just("\n\n")), max_size=60).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=400), _SPEECH))
def test_no_text_is_too_strange(text: str) -> None:
    """Whatever the text, every reader answers, and within its bounds."""
    for read in READERS[1:]:
        answer = read(text)
        assert answer is None or isinstance(answer, bool) or len(str(answer)) <= 300


_PARAGRAPHS = st.lists(
    st.sampled_from(
        [
            "All tests pass.",
            "The project is complete.",
            "However, two tests still fail.",
            "US-004 is done.",
            "I am not done yet.",
            "No changes needed.",
            "Should I use Postgres or SQLite?",
            "Moved the store behind the queue.",
            "- an item\n- another item",
            "Remaining:\n- the docs",
            PROMISE,
        ]
    ),
    max_size=5,
)
_FENCED = st.tuples(
    st.sampled_from(["```", "~~~", "````", "```text"]),
    st.sampled_from(["Project complete.", "I am not done yet.", "", PROMISE, "Should I stop?"]),
).map(lambda pair: f"{pair[0]}\n{pair[1]}\n{pair[0].rstrip('tex')}")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_PARAGRAPHS, _FENCED, st.integers(min_value=0, max_value=5))
def test_a_fenced_block_changes_nothing(paragraphs: list[str], fenced: str, at: int) -> None:
    """What stands in a fence between paragraphs never changes any answer."""
    plain = "\n\n".join(paragraphs)
    mixed = "\n\n".join([*paragraphs[:at], fenced, *paragraphs[at:]])
    for read in READERS:
        assert read(plain) == read(mixed)


HOSTILE = {
    "one sentence": "complete and ",
    "denials": "not done. ",
    "statements": "All tests pass except x. ",
    "questions": "Should I? ",
    "courtesies": "Let me know if x.\n\n",
    "fences": "```\nx\n",
    "ticks": "`x``",
    "quotes": "\"'“( ",
    "blocks": "---RALPH_STATUS---\nSTATUS: COMPLETE\n",
    "boxes": "- [ ] the project is complete\n",
    "blank lines": "\n",
    "promises": "<promise>",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_is_linear(kind: str) -> None:
    """Sixteen times the hostile text costs at most about sixteen times the time."""
    unit = HOSTILE[kind]

    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        last_paragraph.cache_clear()
        begin = time.process_time()
        for read in READERS:
            read(text)
        return time.process_time() - begin

    small = min(cost(1 << 14) for _ in range(3))
    assert cost(1 << 18) <= 16 * 2.5 * max(small, 0.01)


def test_megabytes_of_prose_cost_what_their_size_costs() -> None:
    """Eight times as much hostile prose takes about eight times as long, and claims nothing."""

    def claims_nothing(text: str) -> None:
        last_paragraph.cache_clear()
        assert says_done(text) is None
        assert claims_completion(text) is None

    assert_linear(repeated("The project is complete, but not done. "), claims_nothing, 1 << 18)
