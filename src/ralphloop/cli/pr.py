"""`ralph pr`: a run's branch becomes a pull request with the morning report as its text.

Only when a person asks, or has said yes to `on_end = "pr"`; never by an agent of a run.  A branch
has one open pull request: its text is brought up to date between two marks, and what people wrote
around it stays, as does what they made of it: a draft or none, closed or merged.
"""

import os
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.config import insist_on_person
from ralphloop.cli.given import json_option
from ralphloop.cli.steering import refuse_agent
from ralphloop.errors import RalphError, RepositoryError
from ralphloop.journal.database import belief_in
from ralphloop.journal.seal import insist
from ralphloop.loop.confine import confined_repository
from ralphloop.night.look import config_of, find_run, reading
from ralphloop.project import Project, find_project
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.github import HubPlace, Offer, asked_of, call, offer, push, remote_of
from ralphloop.text.plain import one_line
from ralphloop.ui.report import gather
from ralphloop.ui.report.render import as_markdown
from ralphloop.ui.report.values import Report

_LONGEST_BODY = 65_536  # GitHub counts characters; bytes are never fewer
_CUT_WORDS = 600  # bytes kept for saying what was cut
_BEGIN = "<!-- ralph: report -->"
_END = "<!-- ralph: end of report -->"
_OURS = "ralph: "  # a title that begins so may be written anew
_PASSED = ("verified", "checked", "claimed", "review")
_NOT_PROVEN = ("waiting", "review", "failed", "claimed", "checked", "open")
_TURN = "mutation($id: ID!) {{ {name}(input: {{pullRequestId: $id}}) {{ clientMutationId }} }}"

_Fields = dict[str, object]


class _Pull(msgspec.Struct):
    number: int
    html_url: str
    state: str = "open"
    draft: bool = False
    merged_at: str | None = None
    title: str = ""
    body: str | None = None
    node_id: str = ""
    head: dict[str, object] = {}


@click.command()
@click.argument("run", required=False)
@click.option("--draft/--ready", default=None, help="Default: a draft unless all is verified.")
@click.option("--base", metavar="BRANCH", help="Where it is to go (the default branch).")
@click.option("--title", help="Its title.")
@click.option("--cost", is_flag=True, help="Say what the run has cost, too.")
@click.option("--remote", metavar="NAME", help="Where the branch is pushed to.")
@click.option("--repo", metavar="OWNER/NAME", help="Where it is opened, if not there.")
@click.option("--new", is_flag=True, help="Open another one though the last was closed or merged.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option("The result as JSON.")
def pr(run: str | None, as_json: bool, **typed: object) -> None:
    """Push the branch of RUN, or of the newest run, and open or update its pull request.

    The morning report is its text.  It goes through gh, with your login; nothing is ever forced,
    and nothing goes to the default branch.
    """
    wanted = SimpleNamespace(**typed)
    project = find_project()
    refuse_agent(project, "pr")
    insist_on_person("an agent does not publish its own work")
    report = _report(project, run)
    with reading(project) as journal:
        config = config_of(project, find_run(journal, report.run))
    git = confined_repository(project, config).git
    remote, own = remote_of(git, report.branch, wanted.remote)
    place, default = asked_of(wanted.repo, own)
    base = wanted.base or default
    kept = {default, base} if own in (None, place) else {asked_of(None, own)[1]}  # of a fork: its
    what = offer(git, remote, report.branch, report.run, base, kept)
    head = f"{(own or place).owner}:{what.branch}"
    known = _known(place, head, anew=wanted.new)
    # What keeps a run from being verified as a whole.
    weak = [group for group in report.groups if group.key in _NOT_PROVEN and group.count]
    unproven = [f"{group.title.lower()} {group.count}" for group in weak]
    unproven += [] if report.ended_at else ["the run has not ended"]
    unproven += [] if weak or report.proof["proven"] else ["nothing was verified"]
    draft = known.draft if known else bool(unproven)
    draft = draft if wanted.draft is None else wanted.draft
    fields = _fields(report, known, wanted)
    done = known
    if not wanted.dry_run:
        push(git, what)
        done = _sent(place, known, fields, {"head": head, "base": base, "draft": draft})
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
    if as_json:
        output.emit_json(result)
        return
    for line in _told(result, what, unproven):
        output.note(line)
    text = f"{fields.get('title', '')}\n\n{fields.get('body', '')}"
    output.emit_lines([output.safe(text if wanted.dry_run else str(result["url"]))])


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


def _known(place: HubPlace, head: str, *, anew: bool) -> _Pull | None:
    """The open pull request of a branch; one that was closed or merged stays so."""
    asked = {"head": head, "state": "all", "sort": "created", "direction": "desc"}
    listed = call(place, place.path("pulls"), list[_Pull], asked)
    # GitHub leaves a filter out that it does not understand.
    found = [one for one in listed if str(one.head.get("label")).lower() == head.lower()]
    known = next((one for one in found if one.state == "open"), None)
    if known or anew or not found:
        return known
    last = found[0]
    how = "merged"
    step = "To open another one: ralph pr --new"
    if not last.merged_at:
        how = "closed by somebody"
        step = f"{step}. To open it again: gh pr reopen {last.number}"
    told = f"pull request #{last.number} of this branch was {how}: {last.html_url}"
    raise RepositoryError(told, step)


def _sent(place: HubPlace, known: _Pull | None, fields: _Fields, new: _Fields) -> _Pull:
    try:
        if known is None:
            return call(place, place.path("pulls"), _Pull, {**fields, **new}, "POST")
        done = call(place, place.path("pulls", known.number), _Pull, fields, "PATCH")
        if new["draft"] is not known.draft:
            name = "convertPullRequestToDraft" if new["draft"] else "markPullRequestReadyForReview"
            asked = {"query": _TURN.format(name=name), "variables": {"id": known.node_id}}
            call(place, "graphql", dict[str, object], asked, "POST")
    except RalphError as error:
        error.message += f" ({new['head']} is pushed; the same command goes on from there)"
        raise
    return done


def _told(result: _Fields, what: Offer, unproven: list[str]) -> Iterator[str]:
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


def _fields(report: Report, known: _Pull | None, wanted: SimpleNamespace) -> _Fields:
    """Title and text; a person's own title stays, and what they wrote around our text."""
    secrets = secret_values(os.environ)
    fields = _Fields()
    text = redact(as_markdown(report, UTC, brief=True, cost=wanted.cost), secrets)
    before, begin, rest = ((known and known.body) or "").partition(_BEGIN)
    after = rest.rpartition(_END)[2]
    before += "\n\n" if before.strip() and not begin else ""
    room = _LONGEST_BODY - len(f"{before}{_BEGIN}\n\n{_END}{after}".encode())
    if room > 2 * _CUT_WORDS:  # else it is full of other people's words, and stays
        fields["body"] = f"{before}{_BEGIN}\n{fitted(text, room)}\n{_END}{after}"
    if wanted.title or known is None or known.title.startswith(_OURS):
        passed = [line for group in report.groups if group.key in _PASSED for line in group.stories]
        words = passed[0].title if len(passed) == 1 else report.headline
        fields["title"] = redact(wanted.title or one_line(f"{_OURS}{words}", 200), secrets)
    return fields | ({"base": wanted.base} if wanted.base else {})


def fitted(text: str, room: int) -> str:
    """The text in so many bytes, cut between lines; the sections that lost something are named."""
    if len(text.encode()) <= room:
        return text
    kept: list[str] = []
    used = 0
    section = "the beginning"
    cut = []
    for line in text.splitlines():
        used += len(line.encode()) + 1
        section = line[3:] if line.startswith("## ") else section
        if used <= room - _CUT_WORDS:
            kept.append(line)
        elif section not in cut:
            cut.append(section)
    named = one_line(f"Cut for length: {', '.join(cut)}", _CUT_WORDS // 4)
    return "\n".join([*kept, "", f"{named}. All of it: `ralph report`"])
