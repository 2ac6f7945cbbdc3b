"""`ralph pr`: a run's branch becomes a pull request with the morning report as its text.

Only when a person asks, or has said yes to `on_end = "pr"`; never by an agent of a run.  A branch
has one open pull request: its text is brought up to date between two marks, and what people wrote
around it stays, as does what they made of it: a draft or none, closed or merged.  With `--follow`
it is stayed with until it is green (`forge.follower`).
"""

import os
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.shared.agreement import insist_on_person
from ralphloop.cli.shared.options import complete_run, dollars, duration, json_option, number
from ralphloop.cli.shared.run_options import options_of, setting_option
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.config.load import load_config
from ralphloop.core.following import Follow, FollowEnd
from ralphloop.errors import ExitCode, LockedError, RepositoryError, UsageError
from ralphloop.forge.evidence import tables_of
from ralphloop.forge.opening import (
    KnownPull,
    PullFields,
    find_pull,
    framed,
    send_pull,
    without_places,
)
from ralphloop.journal.authenticity import insist
from ralphloop.journal.database import belief_in
from ralphloop.journal.lock import KernelLock
from ralphloop.loop.confine import confined_repository
from ralphloop.night.look import config_of, find_run, look, reading
from ralphloop.project import Project, find_project
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.github import HubPlace, Offer, ask_of, offer, push, remote_of
from ralphloop.text.plain import one_line
from ralphloop.ui.report import gather
from ralphloop.ui.report.render import as_markdown
from ralphloop.ui.report.values import Report

_OURS = "ralph: "  # a title that begins so may be written anew
_PASSED = ("verified", "checked", "claimed", "review", "accepted")
_NOT_PROVEN = ("waiting", "review", "failed", "claimed", "checked", "open")


@click.command()
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--draft/--ready", default=None, help="Default: a draft unless all is verified.")
@click.option("--base", metavar="BRANCH", help="Where it is to go (the default branch).")
@click.option("--title", help="Its title.")
@click.option("--cost", is_flag=True, help="Say what the run has cost, too.")
@click.option("--remote", metavar="NAME", help="Where the branch is pushed to.")
@click.option("--repo", metavar="OWNER/NAME", help="Where it is opened, if not there.")
@click.option("--new", is_flag=True, help="Open another one though the last was closed or merged.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--per-story/--per-run", default=None, help="Default: as git.pr says.")
@click.option("--follow", is_flag=True, help="Stay until it is green: mend, push, answer.")
@click.option("--rounds", type=number, help="Of work at most, with --follow.")
@click.option(
    "--merge",
    type=click.Choice(["when-green"]),
    help="With --follow: merge it if all is verified and nobody asked for changes.",
)
@setting_option("--max-cost", "limits.max_cost_usd", "Dollars, with --follow.", dollars)
@setting_option("--max-iterations", "limits.max_iterations", "Starts, with --follow.", number)
@setting_option("--max-time", "limits.max_time", "Wall clock, with --follow.", duration)
@click.option("--trust", "trusted", is_flag=True, help="Trust its commands for --follow.")
@click.option("--trust-pin", metavar="HASH", help="The same for exactly these.")
@json_option("The result as JSON.")
def pr(run: str | None, as_json: bool, **typed: object) -> int:
    """Push the branch of RUN, or of the newest run, and open or update its pull request.

    The morning report is its text.  It goes through gh, with your login; nothing is ever forced,
    and nothing goes to the default branch.  With --follow what is red, and what people who may
    write ask for, becomes stories that are run, pushed and answered.
    """
    wanted = SimpleNamespace(**typed)
    project = find_project()
    refuse_agent(project, "pr")
    insist_on_person("an agent does not publish its own work")
    for option in ("rounds", "merge"):
        if getattr(wanted, option) is not None and not wanted.follow:
            raise UsageError(f"--{option} is about --follow", "ralph pr --follow")
    if wanted.follow and wanted.dry_run:
        raise UsageError("--follow acts, --dry-run does not", "Leave one of them out.")
    if _is_per_story(project, wanted):
        from ralphloop.cli.shared.story_prs import open_for_stories

        return open_for_stories(project, _report(project, run), wanted, as_json=as_json)
    kept = _known_follow(project, run)
    is_cut_off = kept is not None and not kept.is_over
    if is_cut_off and wanted.follow:  # it says itself what is to be pushed, and when
        wanted.dry_run = True
    elif is_cut_off and kept is not None and kept.merging is not None:
        why = f"{kept.base} is being merged into {kept.source}, and that is not solved yet"
        raise RepositoryError(why, "ralph pr --follow goes on with it")
    if wanted.follow:
        _settle_trust(project, typed, as_json=as_json)
    opened = _open(project, kept.run if kept else run, wanted)
    if not wanted.follow:
        _show(opened, as_json=as_json, is_dry=wanted.dry_run)
        return ExitCode.COMPLETE
    for line in opened.lines:
        output.note(line)
    return _follow(project, opened, kept, wanted, typed, as_json=as_json)


def _settle_trust(project: Project, typed: dict[str, object], *, as_json: bool) -> None:
    """A person's yes to what following will run, before anything is pushed or waited for."""
    from ralphloop.cli.shared.agreement import settle_trust
    from ralphloop.loop.prepare import prepare

    settle_trust(prepare(options_of({**typed, "as_json": as_json}, start=project.root)))


def _is_per_story(project: Project, wanted: SimpleNamespace) -> bool:
    """Whether each story gets one of its own; raises where that cannot be followed."""
    is_asked = wanted.per_story
    if is_asked is None and not wanted.follow:
        is_asked = load_config(project.root, env=os.environ).config.git.pr == "story"
    if is_asked and (wanted.follow or wanted.title):
        option = "--follow" if wanted.follow else "--title"
        raise UsageError(f"{option} is about one pull request for the run", "ralph pr --per-run")
    return bool(is_asked)


class _Opened(NamedTuple):
    """A pull request that is there, or would be."""

    result: PullFields
    lines: list[str]  # for a person
    place: HubPlace
    what: Offer
    kept: frozenset[str]  # branches that nothing is pushed to
    run: str


def _open(project: Project, run: str | None, wanted: SimpleNamespace) -> _Opened:
    """Push the branch and bring the pull request up to date, or see what that would do."""
    report = _report(project, run)
    with reading(project) as journal:
        config = config_of(project, find_run(journal, report.run))
    git = confined_repository(project, config).git
    remote, own = remote_of(git, report.branch, wanted.remote)
    place, default = ask_of(wanted.repo, own)
    base = wanted.base or default
    kept = (
        {default, base} if own in (None, place) else {ask_of(None, own).default_branch}
    )  # of a fork: its
    what = offer(git, remote, report.branch, report.run, base, kept)
    head = f"{(own or place).owner}:{what.branch}"
    known = find_pull(place, head, anew=wanted.new)
    # What keeps a run from being verified as a whole.
    weak = [group for group in report.groups if group.key in _NOT_PROVEN and group.count]
    unproven = [f"{group.title.lower()} {group.count}" for group in weak]
    unproven += [] if report.ended_at else ["the run has not ended"]
    unproven += [] if weak or report.proof["proven"] else ["nothing was verified"]
    draft = known.draft if known else bool(unproven)
    draft = draft if wanted.draft is None else wanted.draft
    fields = _fields(report, known, wanted, told_criteria(project, report))
    done = known
    if not wanted.dry_run:
        push(git, what)
        done = send_pull(place, known, fields, {"head": head, "base": base, "draft": draft})
    result = {
        "action": "updated" if known else "opened",
        "done": not wanted.dry_run,
        "url": done.html_url if done else None,
        "number": done.number if done else None,
        "draft": draft,
        "repository": str(place),
        **output.picked(what, "branch", "commit", "base"),
        **fields,
    }
    lines = [*_told(result, what, unproven)]
    return _Opened(result, lines, place, what, frozenset(kept), report.run)


def _show(opened: _Opened, *, as_json: bool, is_dry: bool) -> None:
    result = opened.result
    if as_json:
        output.emit_json(result)
        return
    for line in opened.lines:
        output.note(line)
    text = f"{result.get('title', '')}\n\n{result.get('body', '')}"
    output.emit_lines([output.safe(text if is_dry else str(result["url"]))])


def _known_follow(project: Project, run: str | None) -> Follow | None:
    """How the pull request of a run was followed; the newest run may have worked for one itself."""
    if not project.journal.exists():
        return None
    with reading(project) as journal:
        found = find_run(journal, run)
        follows = journal.follows()
        if found is None or not follows:
            return None
        own = next((one for one in follows if one.run == found.id), None)
        if own is not None or run is not None:
            return own
        worked = {it.story for it in journal.every_iteration(found.id, brief=True)}
    last = follows[-1]
    return last if worked and worked <= set(last.stories) else None


def _follow(
    project: Project,
    opened: _Opened,
    kept: Follow | None,
    wanted: SimpleNamespace,
    typed: dict[str, object],
    *,
    as_json: bool,
) -> int:
    """Follow it to an end, and say how that came."""
    from ralphloop.cli.shared.foreground import run_here
    from ralphloop.forge.follower import FollowedPlace, Follower, begin, exit_code_of
    from ralphloop.loop.confine import confined_repository

    options = options_of({**typed, "as_json": as_json}, start=project.root)
    config = load_config(project.root, env=os.environ, flags=options.flags).config
    with reading(project) as journal:
        night = find_run(journal, opened.run)
    if night is None or not night.prd_path:
        raise UsageError("only a run with stories can be followed", "ralph run, with a story file")
    place = FollowedPlace(
        project=project,
        repo=confined_repository(project, config),
        hub=opened.place,
        config=config,
        kept=opened.kept,
        source=project.root / night.prd_path,
    )
    number_there = cast("int", opened.result["number"])
    rounds = config.git.follow_rounds if wanted.rounds is None else wanted.rounds
    follow = begin(night, opened.what, str(opened.place), number_there, config, kept, rounds)
    lock = KernelLock.attempt(project.directory / "follow")
    if lock is None:
        raise LockedError("another ralph follows a pull request of this project", "Let it end.")
    why_not = ""
    try:
        follower = Follower(place, follow, work=run_here, options=options, tell=output.note)
        ended = follower.run()
        if wanted.merge and ended.ended is FollowEnd.GREEN:
            why_not = follower.merge_when_green()
            ended = follower.follow
    finally:
        lock.release()
    words = f"{ended.ended}: {ended.why}"
    if why_not:
        words += f"; not merged: {why_not}"
    if as_json:
        said = output.picked(ended, "ended", "why", "round", "stories", "number", "head")
        result = {**opened.result, "done": True, **said, "not_merged": why_not or None}
        output.emit_json(result, indent=None)
    else:
        output.note(words)
        output.emit_lines([output.safe(str(opened.result["url"]))])
    return ExitCode.BLOCKED if why_not else exit_code_of(ended)


def told_criteria(project: Project, report: Report) -> str:
    """What shows each criterion of the run's stories, without places of this machine."""
    names = {line.id for group in report.groups for line in group.stories}
    stories = look(project, run=report.run).stories
    return without_places(project.root, tables_of(it for it in stories if it.story.id in names))


def _report(project: Project, wanted: str | None) -> Report:
    """The report, without places of this machine; only of a journal that is believed."""
    insist(belief_in(project.journal), project.journal)
    report = gather(project, wanted)
    if not report.branch:
        raise RepositoryError("the run had no branch", "ralph run, on a branch")
    data = msgspec.json.encode(report)
    for place, name in ((project.root, b"."), (Path.home(), b"~")):
        if len(place.parts) > 1:
            data = data.replace(msgspec.json.encode(str(place))[1:-1], name)
    return msgspec.json.decode(data, type=Report)


def _told(result: PullFields, what: Offer, unproven: list[str]) -> Iterator[str]:
    verb = "" if result["done"] else "would be "
    if what.branch != what.source:
        yield f"others start from {what.source}: this goes to {what.branch}, yours stays as it is"
    if unproven:
        yield f"not all is verified: {', '.join(unproven)}"
    pushed = "is there already" if what.is_there else f"{verb}pushed, {what.commit[:10]}"
    yield f"{what.remote} {what.branch}: {pushed}"
    number = f" #{result['number']}" if result["number"] else ""
    kind = "draft" if result["draft"] else "pull request"
    yield f"{verb}{result['action']}: {kind}{number} in {result['repository']}"


def _fields(
    report: Report, known: KnownPull | None, wanted: SimpleNamespace, criteria: str
) -> PullFields:
    """Title and text; a person's own title stays, and what they wrote around our text."""
    secrets = secret_values(os.environ)
    fields = PullFields()
    told = as_markdown(report, UTC, brief=True, cost=wanted.cost)
    text = redact("\n".join(part for part in (told, criteria) if part), secrets)
    body = framed((known and known.body) or "", text)
    if body is not None:
        fields["body"] = body
    if wanted.title or known is None or known.title.startswith(_OURS):
        passed = [line for group in report.groups if group.key in _PASSED for line in group.stories]
        words = passed[0].title if len(passed) == 1 else report.headline
        fields["title"] = redact(wanted.title or one_line(f"{_OURS}{words}", 200), secrets)
    return fields | ({"base": wanted.base} if wanted.base else {})
