"""`ralph pr --per-story`: a pull request for each story of a run that passed."""

import os
from types import SimpleNamespace
from typing import NamedTuple

from ralphloop.cli import output
from ralphloop.core.run_state import Standing
from ralphloop.errors import ExitCode, RepositoryError
from ralphloop.forge.evidence import criteria_table
from ralphloop.forge.opening import PullFields, find_pull, framed, send_pull, without_places
from ralphloop.forge.story_pulls import StoryBranch, StoryWork, split_run
from ralphloop.loop.confine import confined_repository
from ralphloop.night.look import commits_of, config_of, look, own_commits, reading
from ralphloop.night.values import StoryLook
from ralphloop.project import Project
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.github import (
    HubPlace,
    Offer,
    ask_of,
    fetch_base,
    heads_there,
    push,
    remote_of,
)
from ralphloop.repo.work_tree import Repository, never_progress, project_prefix
from ralphloop.text.plain import one_line
from ralphloop.ui.report.render import escaped
from ralphloop.ui.report.values import Report

_OURS = "ralph: "


class _Hub(NamedTuple):
    """Where the branches go."""

    project: Project
    repo: Repository
    place: HubPlace
    remote: str
    owner: str


def open_for_stories(
    project: Project, report: Report, wanted: SimpleNamespace, *, as_json: bool
) -> int:
    """Push a branch for each story and open or update its pull request."""
    with reading(project) as journal:
        run = journal.find_run(report.run)
        if run is None:
            raise RepositoryError(f"there is no run {report.run}")
        commits = commits_of(project, run, journal)
        shows = own_commits(journal.every_iteration(run.id), commits)
    repo = confined_repository(project, config_of(project, run))
    remote, own_place = remote_of(repo.git, report.branch, wanted.remote)
    place, default = ask_of(wanted.repo, own_place)
    hub = _Hub(project, repo, place, remote, (own_place or place).owner)
    base = wanted.base or default
    prefix = project_prefix(repo.root, project.root)
    own = never_progress(prefix, [f"{prefix}{run.prd_path}"])
    passed = {
        seen.story.id: seen
        for seen in look(project, run=run.id).stories
        if seen.standing is Standing.PASSED and shows.get(seen.story.id)
    }
    order = [name for name in shows if name in passed]
    works = [StoryWork(name, shows[name], passed[name].story.depends_on) for name in order]
    if not works:
        raise RepositoryError("no story of the run has a commit of its own", "ralph pr --per-run")
    split = split_run(repo, own, run.id, works, base, fetch_base(repo.git, remote, base))
    done = [_opened(hub, one, passed[one.story], run.id, wanted) for one in split.branches]
    left = [{"story": name, "why": why} for name, why in split.left.items()]
    if as_json:
        output.emit_json({"run": run.id, "pulls": done, "left": left})
        return ExitCode.COMPLETE
    for name, why in split.left.items():
        output.note(f"{name} has none: {why}")
    for one in done:
        verb = one["action"] if one["done"] else f"would be {one['action']}"
        kind = "draft" if one["draft"] else "pull request"
        output.note(f"{one['story']}: {kind} {verb}, {one['branch']} to {one['base']}")
        if one["url"]:
            output.emit_lines([output.safe(str(one["url"]))])
    return ExitCode.COMPLETE


def _opened(
    hub: _Hub, branch: StoryBranch, seen: StoryLook, run: str, wanted: SimpleNamespace
) -> PullFields:
    """The pull request of one story, as it is now or would be."""
    head = f"{hub.owner}:{branch.name}"
    known = find_pull(hub.place, head, anew=wanted.new)
    draft = known.draft if known else seen.grade != "verified"
    draft = draft if wanted.draft is None else wanted.draft
    secrets = secret_values(os.environ)
    fields = PullFields()
    told = without_places(hub.project.root, _text(branch, seen, run))
    body = framed((known and known.body) or "", redact(told, secrets))
    if body is not None:
        fields["body"] = body
    if known is None or known.title.startswith(_OURS):
        title = f"{_OURS}{seen.story.id}: {seen.story.title}"
        fields["title"] = redact(one_line(title, 200), secrets)
    done = known
    if not wanted.dry_run:
        _push(hub, branch)
        new = {"head": head, "base": branch.base, "draft": draft}
        done = send_pull(hub.place, known, fields, new)
    return {
        "story": branch.story,
        "action": "updated" if known else "opened",
        "done": not wanted.dry_run,
        "url": done.html_url if done else None,
        "number": done.number if done else None,
        "draft": draft,
        "branch": branch.name,
        "commit": branch.commit,
        "base": branch.base,
        "stands_on": branch.stands_on or None,
    }


def _push(hub: _Hub, branch: StoryBranch) -> None:
    """Push a branch that is not there; one that is stays as it is, whoever worked on it."""
    git = hub.repo.git
    there = heads_there(git, hub.remote, (branch.name,)).get(branch.name)
    if there is not None and there != branch.commit:
        output.note(f"{branch.name} is there already and stays as it is")
        return
    is_there = there is not None
    what = Offer(hub.remote, branch.name, branch.commit, branch.name, branch.base, is_there)
    push(git, what)


def _text(branch: StoryBranch, seen: StoryLook, run: str) -> str:
    story = seen.story
    covered = f", {seen.coverage.words}" if seen.coverage.words else ""
    parts = [escaped(one_line(story.description, 1_000)), f"Grade: **{seen.grade}**{covered}."]
    reason = one_line(seen.state.reason, 400)
    if reason:
        parts.append(escaped(reason))
    parts.append(criteria_table(seen.criteria))
    where = "Its checks ran with all of the run; here it stands alone."
    if branch.stands_on:
        where = f"It stands on {escaped(branch.stands_on)}, whose pull request comes first."
    parts.append(f"{where} Run {run}.")
    return "\n\n".join(part for part in parts if part)
