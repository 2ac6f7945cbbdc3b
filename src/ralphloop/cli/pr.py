"""`ralph pr`: a run's branch becomes a pull request with the morning report as its text.

Only when a person asks, or has said yes to `on_end = "pr"`; never by an agent of a run.  There is
one open pull request for a branch: the first time it is opened, afterwards its text is brought up
to date between two marks, and what people wrote around it stays.  Whether it is a draft is decided
when it is opened; from then on that is theirs.  What somebody closed or merged stays so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.config import insist_on_person
from ralphloop.cli.given import json_option
from ralphloop.errors import RalphError, RepositoryError
from ralphloop.journal.database import belief_in
from ralphloop.journal.seal import insist
from ralphloop.project import Project, find_project
from ralphloop.redaction import redact, secret_values
from ralphloop.repo import github
from ralphloop.repo.git import Git
from ralphloop.repo.github import GitHubPlace, call
from ralphloop.repo.pushing import Offer, offer, push
from ralphloop.text.plain import one_line
from ralphloop.ui.report import gather
from ralphloop.ui.report.values import Report
from ralphloop.ui.steering import refuse_agent

_LONGEST_BODY = 65_536  # GitHub counts characters; bytes are never fewer
_CUT_WORDS = 600  # bytes kept for saying what was cut
_BEGIN, _END = "<!-- ralph: report -->", "<!-- ralph: end of report -->"
_OURS = "ralph: "  # a title that begins so may be written anew
_PASSED = ("verified", "checked", "claimed", "review")
_NOT_PROVEN = ("waiting", "review", "failed", "claimed", "checked", "open")
_TURN = "mutation($id: ID!) {{ {name}(input: {{pullRequestId: $id}}) {{ clientMutationId }} }}"


class _Wanted(msgspec.Struct):
    """What was typed."""

    draft: bool | None
    base: str | None
    title: str | None
    cost: bool
    remote: str | None
    repo: str | None
    new: bool
    dry_run: bool


class _Pull(msgspec.Struct):
    """A pull request, as GitHub tells it."""

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
    wanted, project = msgspec.convert(typed, _Wanted), find_project()
    refuse_agent(project, "pr", time.time())
    insist_on_person("an agent does not publish its own work")
    report, git = _report(project, run), Git(project.root)
    place, head, what = _places(git, report, wanted)
    known = _known(place, head, anew=wanted.new)
    draft = known.draft if known else bool(_unproven(report))
    draft = draft if wanted.draft is None else wanted.draft
    fields, done = _fields(report, known, wanted), known
    if not wanted.dry_run:
        push(git, what)
        try:
            done = _sent(place, known, fields, {"head": head, "base": what.base}, draft=draft)
        except RalphError as error:
            error.message += f" ({what.branch} is pushed; the same command goes on from there)"
            raise
    result = {
        "action": "updated" if known else "opened",
        "done": not wanted.dry_run,
        "url": done.html_url if done else None,
        "number": done.number if done else None,
        "draft": draft,
        "repository": str(place),
        **{name: getattr(what, name) for name in ("branch", "commit", "base")},
        **fields,
    }
    if as_json:
        output.emit_json(result)
    else:
        _tell(result, what, _unproven(report))


def _report(project: Project, wanted: str | None) -> Report:
    """The report, without places of this machine; only of a journal that is believed."""
    insist(belief_in(project.journal), project.journal)
    report = gather(project, wanted)
    if report is None:
        raise RepositoryError("no run has been recorded here yet", "ralph run")
    if not report.branch:
        raise RepositoryError(f"run {report.run} had no branch", "git switch -c NAME, then run")
    data = msgspec.json.encode(report)
    for place, name in ((project.root, b"."), (Path.home(), b"~")):
        if len(place.parts) > 1:
            data = data.replace(msgspec.json.encode(str(place))[1:-1], name)
    return msgspec.json.decode(data, type=Report)


def _places(git: Git, report: Report, wanted: _Wanted) -> tuple[GitHubPlace, str, Offer]:
    """Where it is opened, the name of its branch there, and what is pushed."""
    remote, pushed_to = github.remote_of(git, report.branch, wanted.remote)
    place = github.place_named(wanted.repo) if wanted.repo else pushed_to
    if place is None:
        raise github.not_github()
    hub = github.hub_of(place)
    if hub.archived or (pushed_to == place and hub.permissions.get("push") is False):
        raise github.not_allowed(place, "it is archived" if hub.archived else "it may only read")
    base = wanted.base or hub.default_branch
    what = offer(git, remote, report.branch, report.run, default=hub.default_branch, base=base)
    return place, f"{(pushed_to or place).owner}:{what.branch}", what


def _known(place: GitHubPlace, head: str, *, anew: bool) -> _Pull | None:
    """The open pull request of a branch; one that was closed or merged stays so."""
    from urllib.parse import urlencode

    asked = urlencode({"head": head, "state": "all", "sort": "created", "direction": "desc"})
    listed = call(place, f"{place.path('pulls')}?{asked}", list[_Pull])
    # GitHub leaves a filter out that it does not understand.
    found = [one for one in listed if str(one.head.get("label")).lower() == head.lower()]
    known = next((one for one in found if one.state == "open"), None)
    if known or anew or not found:
        return known
    last = found[0]
    how = "merged" if last.merged_at else "closed by somebody"
    again = "" if last.merged_at else f". To open it again: gh pr reopen {last.number}"
    raise RepositoryError(
        f"pull request #{last.number} of this branch was {how}: {last.html_url}",
        f"To open another one: ralph pr --new{again}",
    )


def _unproven(report: Report) -> list[str]:
    """What keeps a run from being verified as a whole."""
    weak = [group for group in report.groups if group.key in _NOT_PROVEN and group.count]
    found = [f"{group.title.lower()} {group.count}" for group in weak]
    found += [] if report.ended_at else ["the run has not ended"]
    return found or ([] if report.proof.proven else ["nothing was verified"])


def _sent(
    place: GitHubPlace,
    known: _Pull | None,
    fields: dict[str, str],
    new: dict[str, str],
    *,
    draft: bool,
) -> _Pull:
    """Open it, or bring it up to date."""
    if known is None:
        whole = {**fields, **new, "draft": draft}
        return call(place, place.path("pulls"), _Pull, method="POST", fields=whole)
    path = place.path("pulls", known.number)
    done = call(place, path, _Pull, method="PATCH", fields=fields)
    if draft is not known.draft:
        name = "convertPullRequestToDraft" if draft else "markPullRequestReadyForReview"
        asked = {"query": _TURN.format(name=name), "variables": {"id": known.node_id}}
        call(place, "graphql", dict[str, object], method="POST", fields=asked)
    return done


# --- its words -------------------------------------------------------------------------------


def _fields(report: Report, known: _Pull | None, wanted: _Wanted) -> dict[str, str]:
    """Title and text; a person's own title stays, and what they wrote around our text."""
    from ralphloop.ui.report.render import as_markdown

    secrets, fields = secret_values(os.environ), {}
    text = redact(as_markdown(report, UTC, brief=True, cost=wanted.cost), secrets)
    before, after = _around((known and known.body) or "")
    room = _LONGEST_BODY - len(f"{before}{_BEGIN}\n\n{_END}{after}".encode())
    if room > 2 * _CUT_WORDS:  # else it is full of other people's words, and stays
        fields["body"] = f"{before}{_BEGIN}\n{fitted(text, room)}\n{_END}{after}"
    if wanted.title or known is None or known.title.startswith(_OURS):
        passed = [line for group in report.groups if group.key in _PASSED for line in group.stories]
        words = passed[0].title if len(passed) == 1 else report.headline
        fields["title"] = redact(wanted.title or one_line(f"{_OURS}{words}", 200), secrets)
    if wanted.base and known:
        fields["base"] = wanted.base
    return fields


def _around(body: str) -> tuple[str, str]:
    """What people wrote before and after our text."""
    before, begin, rest = body.partition(_BEGIN)
    if not begin:
        return (f"{before.rstrip()}\n\n" if before.strip() else ""), ""
    return before, rest.rpartition(_END)[2]


def fitted(text: str, room: int) -> str:
    """The text in so many bytes, cut between lines; the sections that lost something are named."""
    if len(text.encode()) <= room:
        return text
    kept: list[str] = []
    used, section, cut = 0, "the beginning", []
    for line in text.splitlines():
        used += len(line.encode()) + 1
        section = line[3:] if line.startswith("## ") else section
        if used <= room - _CUT_WORDS:
            kept.append(line)
        elif section not in cut:
            cut.append(section)
    named = one_line(f"Cut for length: {', '.join(cut)}", _CUT_WORDS // 4)
    return "\n".join([*kept, "", f"{named}. All of it: `ralph report`"])


def _tell(result: Mapping[str, object], what: Offer, unproven: list[str]) -> None:
    """For people: what was done is said beside, the address is the result; or what would be."""
    if what.branch != what.source:
        output.note(
            f"{what.source} is where others start from, so it goes to {what.branch};"
            f" your {what.source} stays as it is"
        )
    if unproven:
        output.note(f"not all is verified: {', '.join(unproven)}")
    verb = "" if result["done"] else "would be "
    state = "is there already" if what.is_there else f"{verb}pushed, {what.commit[:10]}"
    output.note(f"{what.remote} {what.branch}: {state}")
    number = f" #{result['number']}" if result["number"] else ""
    kind = "draft" if result["draft"] else "pull request"
    output.note(f"{verb}{result['action']}: {kind}{number} in {result['repository']}")
    text = f"{result.get('title', '')}\n\n{result.get('body', '')}"
    output.emit_lines([output.safe(str(result["url"])) if result["done"] else output.safe(text)])
