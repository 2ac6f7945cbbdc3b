"""What agents found becomes stories of a run in lanes, where `stories.accept_found` says so.

The list of such a run is the one in its branch, so a story that was found is a commit there, made
between two landings.  A person's own edit of the list knows nothing of it: what their text lacks is
added to it before that is taken over.  In the list it is called as it was proposed (`F-1`): the
next free number may be taken in the person's file meanwhile.  Where the list is the person's alone,
it is written there.
"""

import tempfile
from pathlib import Path

from msgspec.structs import replace

from ralphloop.core.proposals import USUAL_CRITERION, ProposalStanding
from ralphloop.errors import RalphError
from ralphloop.lanes.branch import bring_list
from ralphloop.lanes.pool import LanePool
from ralphloop.loop.proposing import acceptable, keep_accepted, make_story
from ralphloop.stories.source import load, read

_SUBJECT = "{} with what was found on the way"


def take_in_found(pool: LanePool) -> bool:
    """Add what was found in this run to its list; whether any was.  Nothing may be landing."""
    run = pool.run
    workspace = pool.workspace
    listed = workspace.stories
    stories = workspace.story_list()
    if listed is None or stories is None or not run.config.stories.accept_found:
        return False
    made = []
    for one in acceptable(run):
        if stories.get(one.id) is None:
            try:
                made.append(make_story(listed.path, one, (USUAL_CRITERION,), name=one.id))
            except RalphError as error:
                run.tell(f"{one.id} was not made a story: {error.message}")
                break
        else:  # it was added, and somebody was killed before that was written down
            made.append(replace(one, standing=ProposalStanding.ACCEPTED, became=one.id))
    if not made:
        return False
    if not pool.book.own_list:
        bring_list(pool, read(listed.path), "", _SUBJECT.format(listed.path.name))
    workspace.touched()
    for one in made:
        keep_accepted(run, one)
    return True


def with_found(pool: LanePool, path: Path, text: bytes) -> bytes:
    """A person's own text of the list, with the stories that this run added to the branch's."""
    run = pool.run
    stories = load(path, data=text).list
    mine = [one for one in run.journal.proposals() if one.run == run.id and one.became == one.id]
    lost = [one for one in mine if stories.get(one.became) is None]
    if not lost:
        return text
    with tempfile.TemporaryDirectory(dir=pool.home.project.directory) as room:
        copy = Path(room) / path.name
        copy.write_bytes(text)
        for one in lost:
            make_story(copy, one, (USUAL_CRITERION,), name=one.became)
        return read(copy)
