"""Named patterns of going in circles."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.model import CheckResult, CheckStatus, Evidence
from ralphloop.core.policy import Policy, Preset
from ralphloop.core.progress import (
    Footprint,
    Memory,
    WindowEntry,
    assess,
    detect_stuck_loop,
    normalise_reply,
    output_decline,
    remember,
    signs_for_prompt,
    similar,
    treading_water,
)


def names(*window: WindowEntry) -> list[str]:
    """The patterns seen in a window."""
    return [pattern.name for pattern in detect_stuck_loop(window, Policy())]


def error(text: str | None, *, progress: bool = True) -> WindowEntry:
    """An iteration that ended in this error."""
    return WindowEntry(error=text, progress=progress)


def reply(text: str, *, progress: bool = False) -> WindowEntry:
    """An iteration that answered this."""
    return WindowEntry(reply=normalise_reply(text), progress=progress)


def test_S02_AC9_the_same_error_three_times_is_stuck_even_with_progress() -> None:
    """Three iterations with the same error signature are stuck, two are not."""
    assert names(*[error("boom")] * 3) == ["same_error"]
    assert names(*[error("boom")] * 2) == []


def test_S03_AC3_detect_stuck_loop_says_what_it_saw() -> None:
    """The pattern names the error, so that the nudge can repeat it."""
    pattern = detect_stuck_loop([error("TypeError: x")] * 3, Policy())[0]
    assert pattern.detail == "the same error 3 times: TypeError: x"


def test_three_clean_iterations_are_not_stuck() -> None:
    """No error three times is not the same error three times."""
    assert names(*[error(None)] * 6) == []


@pytest.mark.parametrize(
    "row",
    [["a", "b", "a"], ["a", "a", "b"], ["a", None, "a", "a"], ["a", "a", None]],
    ids=["mixed", "solved by another", "interrupted", "solved"],
)
def test_broken_rows_of_errors_are_not_stuck(row: list[str | None]) -> None:
    """Only the newest three count, and all of them must agree."""
    assert "same_error" not in names(*[error(text) for text in row])


def test_now_an_error_and_now_none_is_no_alternation() -> None:
    """There is nothing to go to and fro between where one side was not seen."""
    row = [error(text, progress=False) for text in ("a", None, "a", None)]
    assert names(*row) == []
    assert names(*(error(text, progress=False) for text in "abab")) == ["alternation"]


def test_near_identical_replies_without_progress_are_stuck() -> None:
    """Numbers and punctuation do not make a reply a new one."""
    replies = [reply(f"Should I use Postgres or SQLite? Please confirm ({n}).") for n in range(3)]
    assert names(*replies) == ["same_reply"]


def test_the_same_reply_with_progress_is_not_stuck() -> None:
    """Short honest reports may repeat as long as the work moves."""
    assert names(*[reply("Moved another piece out.", progress=True)] * 3) == []


def test_different_replies_are_not_similar() -> None:
    """Two ordinary reports about different things are far apart."""
    assert not similar(
        normalise_reply("Pulled the retry policy out of the client and gave it its own tests."),
        normalise_reply("The exporter writes to a temporary name and renames at the end."),
    )


WORDS = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize(
    "changed, alike",
    [((), True), ((0,), True), ((0, 25), False), ((12,), False)],
    ids=["nothing", "first word", "both ends", "in the middle"],
)
def test_how_much_of_a_reply_may_differ(changed: tuple[int, ...], alike: bool) -> None:
    """Of 24 sequences of three words a changed end spoils one, a changed word inside three."""
    other = ["other" if n in changed else word for n, word in enumerate(WORDS)]
    assert similar(" ".join(WORDS), " ".join(other)) is alike


@pytest.mark.parametrize("more, alike", [(3, True), (4, False)])
def test_how_much_may_be_added_to_a_reply(more: int, alike: bool) -> None:
    """Of 17 sequences of three words as they were, three new ones make 85 % that are the same."""
    assert similar(" ".join(WORDS[:19]), " ".join(WORDS[: 19 + more])) is alike


@pytest.mark.parametrize(
    "window, count, lines, treads",
    [
        (6, 6, 9, True),
        (6, 6, 10, False),
        (6, 5, 0, False),
        (6, 6, None, False),
        (1, 1, 0, True),
        (0, 9, 0, False),
    ],
    ids=["fewer lines", "just enough", "too soon", "not measured", "one is enough", "switched off"],
)
def test_when_a_story_treads_water(
    window: int, count: int, lines: int | None, treads: bool
) -> None:
    """So many iterations that together differ by fewer lines than they have to."""
    trail = [Footprint(tree="t", files=("a.py",) if window > 1 else ())] * count
    policy = Policy(treading_window=window, treading_lines=10)
    assert bool(treading_water(trail, Evidence(net_lines=lines), policy)) is treads


@pytest.mark.parametrize("tree, counts", [("t", [True, False]), (None, [True, True])])
def test_a_check_turns_green_once_in_each_tree(tree: str | None, counts: list[bool]) -> None:
    """Where nobody knows the tree, red and green again is taken for another one."""
    memory, seen = Memory(), []
    for status in (CheckStatus.FAILED, CheckStatus.PASSED) * 2:
        evidence = Evidence(tree=tree, checks=(CheckResult(name="tests", status=status),))
        moved = assess(evidence, None, memory)
        memory = remember(memory, evidence, moved)
        seen.append(bool(moved.turned_green))
    assert seen[1::2] == counts
    assert not any(seen[::2])


def test_alternation_between_two_trees_is_seen_at_the_fourth() -> None:
    """A B A B without new progress is going in circles."""
    row = [WindowEntry(tree=tree) for tree in "ABAB"]
    assert names(*row) == ["alternation"]
    assert names(*row[:3]) == []
    assert names(WindowEntry(tree="A", progress=True), *row[1:]) == []


def test_red_green_refactor_is_no_alternation() -> None:
    """Alternating errors with progress every time is honest work."""
    row = [WindowEntry(error=e, tree=str(n), progress=True) for n, e in enumerate("ABAB")]
    assert names(*row) == []


def test_three_revisits_in_a_row_are_stuck() -> None:
    """Going back to trees seen before, three times in a row."""
    revisit = WindowEntry(tree="A", revisited=True)
    assert names(revisit, revisit, revisit) == ["state_revisit"]
    assert names(revisit, WindowEntry(tree="N", progress=True), revisit) == []


def test_SKILL_stuck_output_declining_by_seventy_percent() -> None:
    """A fall of more than 70 % against the median of the earlier ones is named with numbers."""
    pattern = output_decline(100, [1000, 1100, 900, 5000], 70)
    assert pattern is not None
    assert pattern.detail == "output fell by 90 %: 100 characters, usually 1050"


@pytest.mark.parametrize(
    ("chars", "earlier", "percent"),
    [
        (100, [1000, 1000], 70),
        (300, [1000, 1000, 1000], 70),
        (0, [0, 0, 0], 70),
        (10, [1000] * 9, 0),
        (150, [200, 200, 100_000], 70),
    ],
    ids=["too little history", "exactly 70 %", "always silent", "switched off", "one outlier"],
)
def test_no_decline(chars: int, earlier: list[int], percent: int) -> None:
    """Too little history, a smaller fall or one huge answer before are no decline."""
    assert output_decline(chars, earlier, percent) is None


def test_the_thresholds_of_stuck_patterns_are_settings() -> None:
    """Somebody may want to hear of the second time already, or never; 0 switches a sign off."""
    twice = [error("boom")] * 2
    early = Policy(stuck_same_error=2)
    assert [it.name for it in detect_stuck_loop(twice, early)] == ["same_error"]
    never = Policy(stuck_same_error=0)
    assert detect_stuck_loop([error("boom")] * 8, never) == ()
    longer = [WindowEntry(tree=tree) for tree in "ababab"]
    six = Policy(stuck_alternation=6)
    assert [it.name for it in detect_stuck_loop(longer, six)] == ["alternation"]
    assert detect_stuck_loop(longer[1:], six) == ()


@pytest.mark.parametrize("preset", ["standard", "strict"])
@pytest.mark.parametrize("threshold", [2, 3, 4, 7])
@pytest.mark.parametrize("sign", ["same_error", "same_reply", "revisits", "alternation"])
def test_no_sign_waits_for_the_circuit(preset: Preset, threshold: int, sign: str) -> None:
    """The last row without progress after which there is still a prompt shows every sign."""
    policy = msgspec.structs.replace(
        Policy(preset=preset, no_progress_threshold=threshold), **{f"stuck_{sign}": 8}
    )
    left = threshold if preset == "standard" else threshold - 1
    if sign == "alternation" and left < 3:
        pytest.skip("to and fro takes three")
    rows = {
        "same_error": WindowEntry(error="boom"),
        "same_reply": WindowEntry(reply="I could not do it today"),
        "revisits": WindowEntry(tree="A", revisited=True),
    }
    window = [rows.get(sign) or WindowEntry(tree="ab"[n % 2]) for n in range(max(2, left))]
    assert len(signs_for_prompt(window, policy)) == 1
    assert signs_for_prompt(window[1:], policy) == ()
    off = msgspec.structs.replace(policy, **{f"stuck_{sign}": 0})
    assert signs_for_prompt(window, off) == ()
