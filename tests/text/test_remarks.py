"""What an agent may say beside its status block."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.prompts import REMARKS_SECTION
from ralphloop.text.remarks import (
    LONGEST_REMARK,
    MOST_REMARKS,
    answer_without_block,
    remarks_in,
    summary_of,
)

BLOCK = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: false\n---END_RALPH_STATUS---"
ANSWER = f"""\
I made parse_size take a sign.

The regular expression now allows one.

- FOUND: strutils.bytes2human rounds 1023.9 up to 1024K.
**DOUBT:** I changed the assertion in test_size, because the old one was wrong.
LEARNED: tests run from the root only.

```
FOUND: this stands in a fence and is nobody's word
```
> DOUBT: quoted from the issue

{BLOCK}
"""


def test_found_and_doubt_are_read_where_the_agent_speaks() -> None:
    """Marks as agents write them count; fences, quotations and the block do not."""
    found = remarks_in(ANSWER)
    assert found.found == ("strutils.bytes2human rounds 1023.9 up to 1024K.",)
    assert found.doubts == ("I changed the assertion in test_size, because the old one was wrong.",)


def test_an_echo_of_the_prompt_is_no_remark() -> None:
    """Our own template, repeated, says nothing."""
    assert remarks_in(REMARKS_SECTION) == ((), ())


def test_the_answer_is_kept_without_its_block() -> None:
    """The next attempt reads what was said; the block is ours to read."""
    kept = answer_without_block(ANSWER, 4_000)
    assert kept.startswith("I made parse_size take a sign.")
    assert "RALPH_STATUS" not in kept
    assert "bytes2human" in kept


def test_the_summary_is_what_was_done() -> None:
    """Marked lines stand elsewhere; the summary is the answer's own beginning."""
    said = summary_of(ANSWER, 600)
    assert said.startswith("I made parse_size take a sign.\nThe regular expression now allows one.")
    assert "FOUND" not in said
    assert "LEARNED" not in said


@given(st.text(), st.integers(1, 200))
def test_all_of_it_is_bounded(text: str, times: int) -> None:
    """However much an agent says, little is kept."""
    said = f"FOUND: a b {text}\nDOUBT: c d {text}\n" * times
    found = remarks_in(said)
    assert len(found.found) <= MOST_REMARKS
    assert all(len(line) <= LONGEST_REMARK for line in (*found.found, *found.doubts))
    assert len(answer_without_block(said * 20, 500)) <= 500
