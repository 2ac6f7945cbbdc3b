"""A diff in parts says everything that the whole says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.text.diffs import diff_parts

LINES = st.lists(st.text("ab+-@ diff\t", max_size=80), max_size=60)


def _section(number: int, lines: list[str]) -> str:
    body = "".join(f"+{line}\n" for line in lines)
    name = f"file{number}.txt"
    head = f"diff --git a/{name} b/{name}\nindex 1..2\n--- a/{name}\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


@given(st.lists(LINES, max_size=6), st.integers(200, 2_000))
def test_every_line_is_in_a_part_and_no_part_is_too_long(files: list[list[str]], most: int) -> None:
    """In their order; each file's own lines stand above each piece of it."""
    whole = "".join(_section(number, lines) for number, lines in enumerate(files))
    parts = diff_parts(whole, most)
    assert all(len(part) <= most for part in parts)
    said = [line for part in parts for line in part.splitlines() if line.startswith("+")]
    headers = {f"+++ b/file{number}.txt" for number in range(len(files))}
    wanted = [line for line in whole.splitlines() if line.startswith("+")]
    assert [line for line in said if line not in headers] == [
        line for line in wanted if line not in headers
    ]
    assert headers <= set(said)


def test_a_short_diff_is_one_part_as_it_is() -> None:
    """Nothing is added to what fits."""
    whole = _section(1, ["a", "b"]) + _section(2, ["c"])
    assert diff_parts(whole, 10_000) == [whole]
    assert diff_parts("", 10) == [""]


def test_a_line_longer_than_a_part_is_broken_and_not_dropped() -> None:
    """All of its characters are shown."""
    parts = diff_parts(_section(1, ["#" * 5_000]), 1_000)
    assert sum(part.count("#") for part in parts) == 5_000
