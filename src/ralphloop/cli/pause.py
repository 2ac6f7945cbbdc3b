"""`ralph pause`: let the run pause."""

import click

from ralphloop.cli.shared.steering import send_request
from ralphloop.journal.records import Wish
from ralphloop.project import find_project


@click.command()
def pause() -> str:
    """Let the run pause once the current iteration has ended."""
    return send_request(find_project(), "pause", Wish())
