"""`ralph skip`: set a story aside for now."""

import click

from ralphloop.cli.shared.options import complete_story
from ralphloop.cli.shared.steering import lane_option, send_request, story_of_lane
from ralphloop.errors import UsageError
from ralphloop.journal.records import Wish
from ralphloop.project import find_project


@click.command()
@click.argument("story", required=False, shell_complete=complete_story)
@lane_option
def skip(story: str | None, lane: int | None) -> str:
    """Set a story aside for now."""
    if lane is not None and story:
        raise UsageError("a story and a lane were named", "Name one of them.")
    named = story_of_lane(lane) if lane is not None else story
    if named is None:
        raise UsageError("no story was named", "ralph skip STORY, or ralph skip --lane N")
    return send_request(find_project(), "skip", Wish(story=named))
