"""Stories that somebody proposes and nobody has agreed to: what an agent found on the way, what a
person wants besides, what stands under a pull request.

A proposal is words with a provenance.  It never runs; a person makes a story of it, or drops it.
What says nearly the same is one proposal, also where it was dropped: nobody is asked twice.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.core.model import Value
from ralphloop.text.plain import LazyRegex, counted, one_line

USUAL_CRITERION = "What is described is put right, and a test fails without the change"
LONGEST_PROPOSAL = 400
MOST_OPEN = 50  # what comes after that is not kept: somebody has to look first
_LONGEST_TITLE = 90
_ALIKE = 0.8
_WORD = LazyRegex(r"\w{3,60}")


class ProposalOrigin(StrEnum):
    FOUND = "found"  # by an agent, in a line of its answer
    FOLLOW_UP = "follow_up"  # of a story that a person kept or sent back
    COMMENT = "comment"  # under a pull request


class ProposalStanding(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    DROPPED = "dropped"


class Proposal(Value, kw_only=True):
    id: str
    text: str
    origin: ProposalOrigin = ProposalOrigin.FOUND
    story: str = ""  # it came up at; empty: at none
    run: str = ""
    iteration: int = 0
    at: float = 0.0
    by: str = ""  # the agent, or who commented
    link: str = ""  # to the comment
    times: int = 1  # it was said
    standing: ProposalStanding = ProposalStanding.OPEN
    became: str = ""  # the story it was made into

    @property
    def is_open(self) -> bool:
        return self.standing is ProposalStanding.OPEN

    @property
    def title(self) -> str:
        """Its first sentence."""
        first = self.text.partition(". ")[0].rstrip(".")
        return one_line(first, _LONGEST_TITLE)

    @property
    def provenance(self) -> str:
        """Where it comes from, in words."""
        at_story = f" at {self.story}" if self.story else ""
        origins = {
            ProposalOrigin.FOUND: f"found by {self.by or 'the agent'}",
            ProposalOrigin.FOLLOW_UP: "wanted besides",
            ProposalOrigin.COMMENT: f"said by {self.by or 'somebody'} under the pull request",
        }
        link = f", {self.link}" if self.link else ""
        again = f", {counted(self.times, 'time')}" if self.times > 1 else ""
        return f"{origins[self.origin]}{at_story}{again}{link}"


class Proposed(NamedTuple):
    proposal: Proposal
    is_new: bool  # False: it was known, and is counted once more


def propose(known: Sequence[Proposal], wanted: Proposal) -> Proposed | None:
    """A proposal with its id, or the one that says the same; None where too many are open."""
    text = one_line(wanted.text, LONGEST_PROPOSAL)
    words = _words(text)
    if not words:
        return None
    for one in known:
        if wanted.link and one.link == wanted.link:
            return Proposed(one, is_new=False)  # the same comment, read again
        others = _words(one.text)
        if len(words & others) >= _ALIKE * max(len(words), len(others)):
            # What an agent finds again in the next start of its story was found once; another
            # comment, though by the same person, says it again.
            is_same_voice = bool(one.story) and (one.story, one.by) == (wanted.story, wanted.by)
            is_same_voice &= not wanted.link
            times = one.times if is_same_voice else one.times + 1
            return Proposed(replace(one, times=times), is_new=False)
    if sum(one.is_open for one in known) >= MOST_OPEN:
        return None
    return Proposed(replace(wanted, id=_next_id(known), text=text), is_new=True)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _next_id(known: Iterable[Proposal]) -> str:
    numbers = [int(one.id[2:]) for one in known if one.id.startswith("F-") and one.id[2:].isdigit()]
    return f"F-{max(numbers, default=0) + 1}"
