"""Stories to decide about, as values: what the review's screen is tried and pictured with."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ralphloop.core.criteria import CriterionEvidence
from ralphloop.core.proposals import Proposal
from ralphloop.core.work_diff import LineFinding, Mark, MarkKind, read_patch, with_marks
from ralphloop.errors import RepositoryError
from ralphloop.night.review_values import (
    Claim,
    Doubt,
    ReviewEntry,
    ReviewList,
    StoryReview,
    Worth,
)
from ralphloop.ui.review.deeds import Choose, DeedDone, InTheWayOfIt

PATCH = """\
diff --git a/prd.json b/prd.json
--- a/prd.json
+++ b/prd.json
@@ -1 +1 @@
-false
+true
diff --git a/shop/money.py b/shop/money.py
--- a/shop/money.py
+++ b/shop/money.py
@@ -8,3 +8,8 @@ CENT = Decimal("0.01")
 def total(prices):
     \"\"\"The sum of prices, rounded half up.\"\"\"
-    return sum(map(Decimal, prices)).quantize(CENT, rounding=ROUND_HALF_UP)
+    return sum(map(Decimal, prices)).quantize(CENT)
+
+
+def discounted(prices, percent):
+    \"\"\"The sum of prices, so many percent off.\"\"\"
+    return total([total(prices) * (100 - Decimal(percent)) / 100])
diff --git a/tests/test_money.py b/tests/test_money.py
--- a/tests/test_money.py
+++ b/tests/test_money.py
@@ -9,2 +9,2 @@ def test_total_adds_up():
 def test_total_rounds_half_up():
-    assert money.total(["0.125"]) == Decimal("0.13")
+    assert abs(money.total(["0.125"]) - Decimal("0.13")) <= Decimal("0.01")
"""


def weakened() -> StoryReview:
    """A test was made to ask for less."""
    entry = ReviewEntry(
        story="US-005", title="Take percents off a total", doubt=Doubt.ASKED,
        finding="test weakened: test_total_rounds_half_up. Its old version fails on the new code;"
        " the new version passes on the old code too",
        hints=("test_total_rounds_half_up: weakened",), starts=2, failed=1, cost_usd=0.31,
        took_s=72.0, run="20261117-220000-abc123", iteration=6,
    )  # fmt: skip
    mark = Mark(kind=MarkKind.WEAKENED, words="weakened")
    unwatched = Mark(kind=MarkKind.UNWATCHED, words="no test notices if this line is wrong")
    diff = with_marks(
        read_patch(PATCH, {"prd.json"}.__contains__),
        [
            LineFinding(mark=mark, test="test_total_rounds_half_up"),
            LineFinding(mark=unwatched, path="shop/money.py", line=15),
        ],
    )
    return StoryReview(
        entry=entry,
        claim=Claim(
            said="discounted() takes percents off. I made the rounding test robust against"
            " differences of a cent.",
            doubts=("whether half a cent matters to anybody",),
            found=("stock.py has no tests at all",),
            by="claude sonnet",
        ),
        criteria=(
            CriterionEvidence(
                criterion="total() goes on rounding half up",
                source="tests/test_money.py::test_total_rounds_half_up",
                after="passes",
            ),
            CriterionEvidence(criterion='discounted(["80.00"], 15) is 68.00'),
        ),
        finding=entry.finding,
        worth=Worth.BAD,
        shown_by=(
            "test_total_rounds_half_up as it was, on the new code → assert Decimal('0.12') =="
            " Decimal('0.13')",
            "test_total_rounds_half_up as it is, on the old code → passes too",
        ),
        checks=("pytest -q: passed",),
        remarks=("1 of 2 changed lines is watched by no test: shop/money.py:15",),
        doubted_tests=("tests/test_money.py::test_total_rounds_half_up",),
        unwatched=("shop/money.py:15",),
        diff=diff,
        commands=("git show 1f3d5e7a90",),
    )


def proven(number: int, title: str) -> StoryReview:
    """A story that a test proves."""
    entry = ReviewEntry(
        story=f"US-{number:03}", title=title, doubt=Doubt.VERIFIED,
        finding="proved by test_it (fails before, passes after)", starts=1, cost_usd=0.12,
        took_s=31.0, run="20261117-220000-abc123", iteration=number,
    )  # fmt: skip
    return StoryReview(
        entry=entry,
        claim=Claim(said="It works, and a test shows it.", by="claude sonnet"),
        criteria=(
            CriterionEvidence(
                criterion="It works", source="tests/test_it.py::test_it",
                before="fails", after="passes",
            ),
        ),
        finding=entry.finding,
        worth=Worth.GOOD,
        shown_by=("test_it → fails without it, passes with it",),
        diff_problem="there is no commit of it, and nothing else was kept",
    )  # fmt: skip


STORIES = (weakened(), proven(1, "Greet a person by name"), proven(2, "Greet in German"))
PROPOSED = Proposal(id="F-1", text="stock.py has no tests at all", story="US-005", by="claude")


def night() -> ReviewList:
    """Three stories and a proposal."""
    return ReviewList(
        run="20261117-220000-abc123",
        headline="9 of 10 stories passed · $2.59 · 11m 38s · 1 story needs review",
        items=tuple(one.entry for one in STORIES),
        proposals=(PROPOSED,),
    )


def read(entry: ReviewEntry) -> StoryReview:
    """The story of an entry."""
    return next(one for one in STORIES if one.entry.story == entry.story)


@dataclass
class Noted:
    """Deeds that are only noted, and that may fail or have to be asked about."""

    done: list[str] = field(default_factory=list)
    problem: str = ""
    in_the_way: tuple[str, ...] = ()
    may_go: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_go.set()

    def _note(self, words: str, *open_again: str) -> DeedDone:
        assert self.may_go.wait(30)
        if self.problem:
            raise RepositoryError(self.problem, "Commit or stash them first.")
        self.done.append(words)
        return DeedDone(words, open_again)

    def accept(self, story: str) -> DeedDone:
        """Noted."""
        return self._note(f"accept {story}")

    def take_back(self, story: str) -> DeedDone:
        """Noted."""
        return self._note(f"take back {story}")

    def send_back(self, story: str, why: str, choose: Choose) -> DeedDone:
        """Noted, after a choice where something is in the way."""
        if self.in_the_way and choose(InTheWayOfIt(self.in_the_way, True)) == "keep":
            return self._note(f"keep {story}")
        return self._note(f"send back {story}: {why}", story)

    def ask(self, story: str, words: str) -> DeedDone:
        """Noted."""
        return self._note(f"ask {story}: {words}")

    def make_story(self, one: Proposal, criterion: str) -> DeedDone:
        """Noted."""
        return self._note(f"make {one.id}: {criterion}")

    def drop(self, one: Proposal) -> DeedDone:
        """Noted."""
        return self._note(f"drop {one.id}")
