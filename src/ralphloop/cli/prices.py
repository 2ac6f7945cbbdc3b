"""`ralph prices`: the prices of tokens."""

import os
from pathlib import Path

import click

from ralphloop.agents.prices import (
    all_prices,
    assumed_price,
    our_prices,
    own_file,
    own_prices,
    price_of,
    take_table,
)
from ralphloop.cli import output
from ralphloop.cli.shared.options import json_option
from ralphloop.config.load import load_config
from ralphloop.project import find_project
from ralphloop.text.plain import counted


@click.command()
@click.option("--update", "table", metavar="FILE", help="Take a table of your own from a file.")
@json_option("Print one JSON object.")
def prices(table: str | None, as_json: bool) -> None:
    """Show token prices, for agents that name none.

    \b
    ralph prices --update team.toml   its rows come before ours from now on;
                                      0 for a local model
    """
    if table is not None:
        taken = take_table(Path(table))
        output.note(f"{counted(taken.rows, 'row')} taken into {taken.place}")
    loaded = load_config(find_project().root, env=os.environ)
    stated = loaded.config.prices.models
    own = own_prices().models
    checked = our_prices().checked
    rows = all_prices(stated)
    unpriced = (name for name in our_prices().unpriced if not price_of(name, stated))
    assumed = {name: assumed_price(name, stated=stated) for name in unpriced}
    rows |= {name: found.price for name, found in assumed.items()}
    kinds = ("input", "output", "cache_read", "cache_write")
    width = max(map(len, rows))
    heads = "".join(f"{kind.replace('_', ' '):>12}" for kind in kinds)
    lines = [f"Dollars for a million tokens, checked {checked}; `*` is a family of names."]
    lines += [f"{'':{width}}{heads}"]
    models = {}
    for name, price in sorted(rows.items()):
        cells = {kind: getattr(price, kind) for kind in kinds}
        # The cache costs as much as input where nobody says.
        cells = {kind: price.input if cell is None else cell for kind, cell in cells.items()}
        like = assumed[name].row if name in assumed else ""
        origin = "shipped"
        whose = "  assumed" if like else ""
        if name in stated:
            origin = loaded.origins["prices.models"]
            whose = f"  {origin}"
        elif name in own:
            origin = str(own_file())
            whose = "  yours"
        is_own = name in own and name not in stated
        models[name] = {**cells, "own": is_own, "origin": origin, "assumed_like": like}
        shown = "".join(f"{cell:>12}" for cell in cells.values())
        lines.append(output.safe(f"{name:{width}}{shown}{whose}"))
    lines += [
        "Assumed: no list price is known. A model that is not here is counted likewise, as the",
        "dearest of its provider, and every start says so; your own row ends the guessing:",
        "  ralph prices --update FILE, or [prices] in ralph.toml",
    ]
    lines += output.row("your own", f"{own_file()}{'' if own else ' (not there)'}")
    data = {"checked": checked, "override": str(own_file() or ""), "models": models}
    output.show(lines, data, as_json=as_json)
