"""`ralph review`: what passed, what most needs a person first: claim, evidence, change, one key."""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import complete_story_or_run
from ralphloop.cli.shared.proposed_stories import shown_proposal, walk_proposals
from ralphloop.cli.shared.rejections import ask_what_becomes
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.errors import NothingRan, RalphError, UsageError
from ralphloop.loop.offline_requests import accept
from ralphloop.loop.rejecting import Rejected, send_back
from ralphloop.night.look import holder_of, look_at_list
from ralphloop.night.review import review_list, review_story
from ralphloop.night.review_values import ReviewEntry, ReviewList, StoryReview
from ralphloop.project import Project, find_project
from ralphloop.text.plain import counted
from ralphloop.ui.monitor.paint import Line, Tone, plain_ascii
from ralphloop.ui.review.paper import Shown, change_lines, story_paper

_INDENT = 4
_KEYS = "[a]ccept  [r]eject  [d]iff  [s]kip  [q]uit"
_KEYS_NOT_PASSED = "[a]ccept  [d]iff  [s]kip  [q]uit"
_WIDEST = 79  # everything stands one below the other
_ONLY_ASCII = ("linux", "vt100", "vt220")
_STYLES = {
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "red",
    Tone.BUSY: "cyan",
}
_WITHOUT_CHANGE = Shown(files_only=True)


@click.command()
@click.argument("what", metavar="[STORY|RUN]", required=False, shell_complete=complete_story_or_run)
@click.option("--all", "everything", is_flag=True, help="Also those that were accepted.")
@click.option("--plain", is_flag=True, help="Key by key below each other, without a screen.")
@click.option("--theme", type=click.Choice(["dark", "light"]), default="dark", help="How it looks.")
@click.option("--ascii", "in_ascii", is_flag=True, help="Draw with ASCII only.")
def review(
    what: str | None, everything: bool, plain: bool, theme: str, in_ascii: bool
) -> str | None:
    """Decide about what passed and nobody has looked at, most doubtful first.

    Each story has what its agent claims beside what was found: the criteria with the tests that
    speak of them, the finding with the lines that show it, and the change of the work alone.
    Stories of earlier runs wait until somebody looks at them.  With a STORY only that one is shown,
    with a RUN those of that run.

    \b
    a  accept                       r  send back: asks why, opens it again
    ?  ask, in the next prompt      s  skip
    n  next, p  back                u  undo
    Enter  the whole change         f  its files alone
    o  all that was found out       q  quit; what was decided stays

    Proposed stories come last: a makes one a story of the list, d drops it.

    A story that did again just what you had sent back is shown as well: accepted, it may pass.

    Without a terminal everything is printed; where the terminal cannot draw, it goes key by key.
    """
    project = find_project()
    listed = _listed(project, what, everything=everything)
    if not listed.items and not listed.proposals:
        return "Nothing waits for your review."
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not is_terminal:
        _print(project, listed)
    elif plain or os.environ.get("TERM", "") in ("", "dumb"):
        if _walk(project, listed.items):
            walk_proposals(project, listed.proposals)
    else:
        return _on_screen(project, listed, theme=theme, in_ascii=in_ascii)
    return None


def _listed(project: Project, what: str | None, *, everything: bool) -> ReviewList:
    """What is to be looked at: all that waits, one story, or what waits of one run."""
    found = review_list(project)
    if found is None:
        raise NothingRan
    if holder_of(project, time.time()) is not None:
        raise UsageError("the run is still going on", "`ralph stop` ends it; or wait.")
    entry = found.item(what) if what else None
    if what and entry is None:
        _refuse_open_story(project, what)
        found = review_list(project, what) or found
    if entry is not None:
        return found.only(entry)
    return found.with_accepted() if everything else found


def _refuse_open_story(project: Project, what: str) -> None:
    """Say of a story that has not passed that there is nothing to decide about it."""
    for one in look_at_list(project).stories:
        if one.story.id.casefold() == what.casefold():
            raise UsageError(
                f"{one.story.id} has not passed", "`ralph stories` shows how it stands."
            )


def _width() -> int:
    return max(50, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST))


def _painted(lines: Sequence[Line]) -> Iterator[str]:
    """Lines as they are printed, coloured where that may be."""
    is_plain = not output.speaks_unicode(sys.stdout)
    for spans in lines:
        parts = []
        for text, tone in spans:
            shown = plain_ascii(text) if is_plain else text
            style = _STYLES.get(tone)
            parts.append(output.paint(shown, style) if style else shown)
        yield "".join(parts).rstrip()


def _print(project: Project, listed: ReviewList) -> None:
    """All of it, one story below the other."""
    output.emit_lines([listed.headline])
    for entry in listed.items:
        lines = story_paper(review_story(project, entry), _width(), Shown(whole_change=True))
        output.emit_lines(["", *_painted(lines)])
    for one in listed.proposals:
        output.emit_lines(["", *shown_proposal(one)])


def _on_screen(project: Project, listed: ReviewList, *, theme: str, in_ascii: bool) -> str:
    """Let a person decide on the screen; what was decided, in words."""
    from ralphloop.cli.shared.review_deeds import ProjectDeeds
    from ralphloop.ui.review.review_app import ReviewApp

    bare = os.environ.get("TERM") in _ONLY_ASCII or not output.speaks_unicode(sys.stdout)
    app = ReviewApp(
        listed,
        title=project.root.name,
        read=lambda entry: review_story(project, entry),
        deeds=ProjectDeeds(project),
        in_ascii=in_ascii or bare,
        dark=theme == "dark",
    )
    done = app.run()
    if done is None:
        return ""
    told = []
    if done.accepted:
        told.append(f"accepted: {', '.join(done.accepted)}")
    if done.sent_back:
        told.append(f"sent back: {', '.join(done.sent_back)}")
    if done.left:
        told.append(f"{counted(done.left, 'story', 'waits')} for you: `ralph review`")
    if done.sent_back:
        told.append("to do those again: `ralph run`")
    return "\n".join(told)


def _walk(project: Project, entries: Sequence[ReviewEntry]) -> bool:
    """Story by story; False where the person has enough."""
    sent_back: set[str] = set()  # some with another one
    for number, entry in enumerate(entries, start=1):
        if entry.story in sent_back:
            continue
        shown = review_story(project, entry)
        output.emit_lines([output.paint(f"{number} of {len(entries)}", "dim")])
        output.emit_lines(_painted(story_paper(shown, _width(), _WITHOUT_CHANGE)))
        decided = _decide(project, shown)
        if decided is None:
            return False
        sent_back.update(decided)
        output.emit_lines([""])
    return True


def _decide(project: Project, shown: StoryReview) -> tuple[str, ...] | None:
    """What was sent back by what a person pressed; None where they have enough."""
    entry = shown.entry
    keys = _KEYS if entry.has_passed else _KEYS_NOT_PASSED
    known = "adrsq" if entry.has_passed else "adsq"
    typed = ""
    while True:
        key = output.key(f"{' ' * _INDENT}{keys} ", known)
        if key == "d":
            change = change_lines(shown, _width(), Shown(whole_change=True))
            output.emit_paged("\n".join(_painted(change)), colours=True)
        elif key == "a":
            refuse_agent(project, "accept")
            accept(project, entry.story)
            return ()
        elif key == "r":
            typed = _ask_why(typed)
            done = _send_back(project, entry.story, typed) if typed else None
            if done is not None:
                return done.stories
        elif key == "s":
            return ()
        else:
            return None


def _ask_why(typed: str) -> str:
    """A person's words; those they typed before an error are offered again."""
    words = click.prompt(f"{' ' * _INDENT}Why", default=typed, show_default=bool(typed))
    return str(words).strip()


def _send_back(project: Project, story: str, why: str) -> Rejected | None:
    """Send a story back, and say what was done; None where it failed, which is shown in place."""
    try:
        refuse_agent(project, "reject")
        done = send_back(project, story, why, decide=ask_what_becomes, tell=_say)
    except RalphError as error:
        for line in filter(None, (error.message, error.next_step)):
            output.emit_lines(output.row("!", line, "yellow", width=_INDENT))
        return None
    _say(f"{done.words}.")
    return done


def _say(words: str) -> None:
    output.emit_lines(output.row("", words, width=_INDENT))
