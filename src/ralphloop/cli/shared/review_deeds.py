"""What a person decides in a review, done by the same functions as by the commands."""

from typing import NamedTuple

from ralphloop.cli.shared.proposed_stories import accept_proposal
from ralphloop.cli.shared.steering import refuse_agent, send_request
from ralphloop.core.proposals import Proposal
from ralphloop.journal.records import Wish
from ralphloop.loop.bringing_back import bring_back, can_be_brought_back
from ralphloop.loop.offline_requests import accept, take_back_acceptance
from ralphloop.loop.proposing import drop
from ralphloop.loop.rejecting import RejectionChoice, StandsOnIt, send_back
from ralphloop.project import Project
from ralphloop.ui.review.deeds import Choose, DeedDone, InTheWayOfIt


class ProjectDeeds(NamedTuple):
    """Decisions about the stories of one project."""

    project: Project

    def accept(self, story: str) -> DeedDone:
        refuse_agent(self.project, "accept")
        accept(self.project, story)
        return DeedDone(f"{story} is accepted")

    def take_back(self, story: str) -> DeedDone:
        """Undo what was decided about a story, whether it was accepted or sent back."""
        refuse_agent(self.project, "accept")
        if can_be_brought_back(self.project, story):
            done = bring_back(self.project, story, tell=_say_nothing)
            return DeedDone(done.words, waiting_again=done.stories)
        take_back_acceptance(self.project, story)
        return DeedDone(f"{story} waits for your review again", waiting_again=(story,))

    def send_back(self, story: str, why: str, choose: Choose) -> DeedDone:
        refuse_agent(self.project, "reject")

        def decide(found: StandsOnIt) -> RejectionChoice:
            way = InTheWayOfIt(tuple(found.lines()), can_go_together=bool(found.dependents))
            return RejectionChoice(choose(way))

        done = send_back(self.project, story, why, decide=decide, tell=_say_nothing)
        return DeedDone(done.words, done.stories)

    def ask(self, story: str, words: str) -> DeedDone:
        """A question for whoever works next: it stands in the prompts of the next run."""
        text = f"A question about {story}: {words} (Answer it in your final words.)"
        told = send_request(self.project, "note", Wish(text=text))
        return DeedDone(f"Asked about {story}. {told}")

    def make_story(self, one: Proposal, criterion: str) -> DeedDone:
        refuse_agent(self.project, "stories accept")
        made = accept_proposal(self.project, one, (criterion,))
        return DeedDone(f"{made} was added to the list")

    def drop(self, one: Proposal) -> DeedDone:
        refuse_agent(self.project, "stories drop")
        drop(self.project, one)
        return DeedDone(f"{one.id} was dropped")


def _say_nothing(_words: str) -> None:
    """On a screen nobody listens to what goes on meanwhile."""
