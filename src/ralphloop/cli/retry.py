"""`ralph retry`: open a story again."""

import click

from ralphloop.cli.shared.options import complete_story
from ralphloop.cli.shared.steering import send_request
from ralphloop.journal.records import Wish
from ralphloop.project import find_project


@click.command()
@click.argument("story", shell_complete=complete_story)
def retry(story: str) -> str:
    """Open a story again that was set aside or waits for a person."""
    return send_request(find_project(), "retry", Wish(story=story))
