"""A review as plain words, for an assistant: what the terminal and the page show, line by line."""

from collections.abc import Iterator

from ralphloop.core.work_diff import ChangedFile, WorkDiff
from ralphloop.night.review_values import ReviewList, StoryReview
from ralphloop.stories.names import label


def list_words(found: ReviewList) -> Iterator[str]:
    """What waits for a person's eyes, most doubtful first."""
    if found.headline:
        yield found.headline
    if found.is_live:
        yield "A run goes on: nothing can be accepted or sent back before it ends."
    for one in found.items:
        yield f"{one.mark} {label(one.story)}: {one.title} [{one.doubt}; {one.spent}]"
        yield f"    {one.finding}"
        yield from (f"    look: {hint}" for hint in one.hints)
    for proposal in found.proposals:
        yield f"proposed, {proposal.id}: {proposal.text}"
    if not found.items:
        yield "Nothing waits for your review."


def story_words(review: StoryReview) -> Iterator[str]:
    """The claim, the evidence and the change of one story."""
    entry = review.entry
    told = "; ".join(filter(None, (entry.doubt, entry.coverage.words, entry.spent)))
    yield f"{label(entry.story)}: {entry.title} [{told}]"
    yield "Claim, what its agent says (nothing of it is evidence):"
    yield f"    {review.claim.said or 'nothing'}"
    yield from (f"    its doubt: {words}" for words in review.claim.doubts)
    yield from (f"    it found besides: {words}" for words in review.claim.found)
    yield "Evidence, what ralph measured:"
    yield f"    {review.finding}"
    yield from (f"    {line}" for line in (*review.shown_by, *review.look_at, *review.remarks))
    yield from (f"    check: {words}" for words in review.checks)
    for one in review.criteria_looks:
        yield f"    criterion: {one.criterion}"
        yield f"        {one.words}"
    yield from _change(review.diff, review.diff_problem)


def _change(diff: WorkDiff, problem: str) -> Iterator[str]:
    yield f"Change, +{diff.added} -{diff.removed}:"
    if problem:
        yield f"    {problem}"
    for literal in diff.literals:
        yield f"    {literal.value} stands in {literal.code} and in {literal.test}"
    for file in diff.files:
        yield from _file(file)


def _file(file: ChangedFile) -> Iterator[str]:
    note = f" ({file.note})" if file.note else ""
    yield f"--- {file.path}{note}: +{file.added} -{file.removed}"
    for hunk in file.hunks:
        yield f"@@ {hunk.new} {hunk.where}".rstrip()
        for line in hunk.lines:
            yield f"{line.sign}{line.text}"
            yield from (f"    ^ {mark.words}" for mark in line.marks)
    if file.left_out:
        yield f"… {file.left_out} lines are left out"
