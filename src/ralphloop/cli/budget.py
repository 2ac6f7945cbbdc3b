"""`ralph budget`: raise what the run may cost, use or take."""

import click

from ralphloop.cli.shared.options import dollars, duration, number
from ralphloop.cli.shared.steering import send_request
from ralphloop.errors import UsageError
from ralphloop.journal.records import Wish
from ralphloop.project import find_project


@click.command()
@click.option("--cost", type=dollars, help="Dollars to add.")
@click.option("--tokens", type=number, help="Tokens to add.")
@click.option("--time", "more_time", type=duration, help="Time to add, such as 2h.")
def budget(cost: float | None, tokens: int | None, more_time: float | None) -> str:
    """Raise what the run may cost or use, or how long it may take."""
    if cost is tokens is more_time is None:
        raise UsageError("say by how much", "ralph budget --cost 5 --time 2h")
    more = Wish(cost_usd=cost or 0.0, tokens=tokens or 0, time=more_time or 0.0)
    return send_request(find_project(), "budget", more)
