"""What a person decides on the page, done as in the review of a terminal."""

from functools import partial

from ralphloop.cli.shared.proposed_stories import proposal_called
from ralphloop.cli.shared.review_deeds import ProjectDeeds
from ralphloop.cli.shared.steering import as_listed, send_request
from ralphloop.core.proposals import USUAL_CRITERION
from ralphloop.errors import UsageError
from ralphloop.journal.records import Wish
from ralphloop.loop.rejecting import RejectionChoice
from ralphloop.project import Project
from ralphloop.ui.page.decisions import (
    CarryOut,
    DecidedWay,
    NeedsChoice,
    PageDecision,
    PageDecisionKind,
)
from ralphloop.ui.review.deeds import DeedDone, InTheWayOfIt

_TOGETHER = DecidedWay(RejectionChoice.TOGETHER, "Send all of it back")
_OTHERS = (
    DecidedWay(RejectionChoice.FOLLOW_UP, "Keep it; my words become a story"),
    DecidedWay(RejectionChoice.KEEP, "Keep it"),
)


def decisions_about(project: Project) -> CarryOut:
    return partial(_decide, project)


def wishes_about(project: Project, kind: str, story: str, text: str) -> str:
    return send_request(project, kind, Wish(story=story, text=text))


def _decide(project: Project, decision: PageDecision) -> str:
    """Carry it out; what was done, in words."""
    return f"{_done(project, decision).words}."


def _done(project: Project, decision: PageDecision) -> DeedDone:
    deeds = ProjectDeeds(project)
    match decision.kind:
        case PageDecisionKind.ACCEPT:
            return deeds.accept(as_listed(project, decision.what))
        case PageDecisionKind.UNDO:
            return deeds.take_back(as_listed(project, decision.what))
        case PageDecisionKind.SEND_BACK:
            story = as_listed(project, decision.what)
            return deeds.send_back(story, decision.text, partial(_chosen, decision.choice))
        case PageDecisionKind.TAKE_PROPOSAL:
            one = proposal_called(project, decision.what)
            return deeds.make_story(one, decision.text or USUAL_CRITERION)
        case PageDecisionKind.DROP_PROPOSAL:
            return deeds.drop(proposal_called(project, decision.what))


def _chosen(choice: str, found: InTheWayOfIt) -> str:
    """What the person chose; raises with the ways there are where they have not."""
    if not choice:
        ways = (_TOGETHER, *_OTHERS) if found.can_go_together else _OTHERS
        raise NeedsChoice("\n".join(found.lines), ways)
    if choice not in set(RejectionChoice):
        raise UsageError("there is no such choice", "Reload the page.")
    return choice
