"""`ralph resume`: let a paused run go on."""

import click

from ralphloop.cli.shared.steering import send_request
from ralphloop.journal.records import Wish
from ralphloop.project import find_project


@click.command()
def resume() -> str:
    """Let a paused run go on."""
    return send_request(find_project(), "resume", Wish())
