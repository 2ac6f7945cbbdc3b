"""`ralph note`: a note for the prompts to come."""

import click

from ralphloop.cli.shared.steering import lane_option, send_request, story_of_lane
from ralphloop.journal.records import Wish
from ralphloop.project import find_project


@click.command()
@click.argument("text", nargs=-1, required=True)
@lane_option
def note(text: tuple[str, ...], lane: int | None) -> str:
    """Add a note to the prompts to come, such as: use the v2 API; --lane: to one story's."""
    story = story_of_lane(lane) if lane is not None else ""
    return send_request(find_project(), "note", Wish(story=story, text=" ".join(text)))
