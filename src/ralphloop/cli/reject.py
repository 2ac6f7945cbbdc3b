"""`ralph reject`: send a passed story back."""

import sys

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import complete_story
from ralphloop.cli.shared.rejections import ask_what_becomes, refuse
from ralphloop.cli.shared.steering import as_listed, refuse_agent
from ralphloop.errors import UsageError
from ralphloop.loop.bringing_back import bring_back
from ralphloop.loop.rejecting import Decide, RejectionChoice, send_back
from ralphloop.project import find_project


@click.command()
@click.argument("story", shell_complete=complete_story)
@click.argument("why", nargs=-1)
@click.option("--with-dependents", is_flag=True, help="Send back what stands on it as well.")
@click.option("--follow-up", is_flag=True, help="Then keep it, and add a story with your words.")
@click.option("--keep", is_flag=True, help="Then keep it, and change nothing.")
@click.option("--undo", is_flag=True, help="Bring it back as it was, while nothing happened since.")
def reject(
    story: str,
    why: tuple[str, ...],
    with_dependents: bool,
    follow_up: bool,
    keep: bool,
    undo: bool,
) -> str:
    """Send a passed story back: an ordinary commit takes just its change out.

    The story is open again and its next prompt has your words; the attempt is kept under a ref.
    Before anything is touched the checks run without it.

    Where later work stands on it, that is named by test and story, and you are asked what becomes
    of it; the options answer beforehand.  Without one and without a terminal nothing is touched,
    and the exit code is 2.

    \b
    ralph reject US-3 "The parser must keep comments"
    ralph reject US-3 "It is too slow" --with-dependents
    ralph reject US-3 "It must keep comments, too" --follow-up
    ralph reject US-3 --undo
    """
    decide = _decided(with_dependents=with_dependents, follow_up=follow_up, keep=keep)
    project = find_project()
    named = as_listed(project, story)
    if undo:
        refuse_agent(project, "reject")
        return f"{bring_back(project, named, tell=output.note).words}."
    if not why:
        raise UsageError("say why: its next prompt has your words", f'ralph reject {named} "…"')
    done = send_back(project, named, " ".join(why), decide=decide, tell=output.note)
    return f"{done.words}."


def _decided(*, with_dependents: bool, follow_up: bool, keep: bool) -> Decide:
    """Who says what becomes of a story that something stands on."""
    wishes = {
        RejectionChoice.TOGETHER: with_dependents,
        RejectionChoice.FOLLOW_UP: follow_up,
        RejectionChoice.KEEP: keep,
    }
    chosen = [choice for choice, is_wanted in wishes.items() if is_wanted]
    if len(chosen) > 1:
        words = "--with-dependents, --follow-up and --keep say different things"
        raise UsageError(words, "Leave all but one of them out.")
    if chosen:
        return lambda _: chosen[0]
    is_asked = sys.stdin.isatty() and sys.stdout.isatty()
    return ask_what_becomes if is_asked else refuse
