"""`ralph trust`: look at what this repository may run, and say yes to it once."""

import os
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.shared.agreement import (
    adopt_journal,
    describe_journal,
    grant_lines,
    grants_of_project,
    has_yes,
    insist_on_person,
    question_about,
)
from ralphloop.journal.authenticity import Belief
from ralphloop.journal.database import belief_in
from ralphloop.project import find_project
from ralphloop.text.plain import counted
from ralphloop.trust import agree, load_record, not_trusted, pin_of, revoke


@click.command()
@click.option("--show", is_flag=True, help="Print the lines and their hash; change nothing.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--revoke", "forget", is_flag=True, help="Forget everything agreed to here.")
@click.option("--journal", is_flag=True, help="Accept a journal that ralph does not believe.")
@click.option("--agent", metavar="NAME", help="As for a run with this agent.")
@click.option("--prd", type=click.Path(path_type=Path), help="The story file.")
def trust(
    show: bool, yes: bool, forget: bool, journal: bool, agent: str | None, prd: Path | None
) -> str | None:
    """Look at what this repository may run here, and say yes to it once.

    These are settings that start a program or loosen safety, declared agents, and commands of
    stories.  The answer is kept outside of the repository and holds for all its work trees.
    """
    project = find_project()
    if journal:
        belief = belief_in(project.journal)
        if belief is Belief.OURS:
            there = project.journal.exists()
            return "The journal is what ralph wrote." if there else "No journal yet."
        if show:
            output.emit_lines(describe_journal(project, belief))
            return None
        insist_on_person()
        adopt_journal(project, belief, yes=yes)
        return "Accepted as it is."
    if forget:
        insist_on_person()
        gone = revoke(project.root, os.environ)
        return "Forgotten: the next run asks." if gone else "There was nothing."
    grants = grants_of_project(project, prd, agent)
    lacking = load_record(project.root, os.environ).new(grants)
    if not grants:
        return "Nothing in this repository's settings runs a program or loosens safety."
    if show or not lacking:
        asks = f"not agreed to yet: {counted(len(lacking), 'line')}; `ralph trust` asks"
        state = asks if lacking else "agreed to; `ralph trust --revoke` forgets it"
        output.emit_lines([*grant_lines(grants), state, f"hash: {pin_of(grants)}"])
        return None
    insist_on_person()
    if not has_yes(question_about(project.root, lacking), "Trust them?", given=yes):
        raise not_trusted(grants, lacking, agent=agent or "")
    agree(project.root, os.environ, grants)
    return "Agreed. A run asks again only when one of these lines changes."
