"""From the index to files that agents read: skills and the managed block.

Published files get a commit of their own.  A memory file that a person has uncommitted changes in
is left alone, because our commit would take them along; files that git ignores are written and not
committed; where the commit is refused, the memory file is put back and the skills wait for the next
time.

A run makes no file that nobody asked for: a memory file and a place for skills must be there, or be
named in the settings.  It takes out only what was known on this machine and no longer holds, or was
forgotten by a person: what others published stays.  While every Nth story is held out nothing is
published: what lies in the repository would be read by the held out ones too.
"""

from __future__ import annotations

import msgspec

from ralphloop.config.model import LearningSection, MemoryFile, SkillStyle
from ralphloop.errors import RalphError
from ralphloop.learning import memory_file, skills, store
from ralphloop.learning.model import Index
from ralphloop.project import Project
from ralphloop.repo.commit import CommitStatus, commit_paths, with_trailers
from ralphloop.repo.git import PATHSPECS_ON_STDIN, literal_pathspecs
from ralphloop.repo.own_files import project_prefix
from ralphloop.repo.work_tree import Repository

HELD_OUT = "nothing is published while learning.holdout is set: held out stories would read it"


def after_story(
    project: Project, config: LearningSection, *, ended_stories: int, now: float
) -> list[str]:
    """Aggregate every so many stories; returns problems in words, never raises."""
    if not config.enabled or not config.every or ended_stories % config.every:
        return []
    try:
        return list(store.rebuild(project, now=now).problems)
    except (RalphError, OSError) as error:
        return [f"learnings were not aggregated: {error}"]


def at_end(
    project: Project,
    repo: Repository | None,
    config: LearningSection,
    *,
    run: str,
    commit: bool,
    now: float,
) -> list[str]:
    """Aggregate, publish and commit at the end of a run; returns what was done, never raises."""
    if not config.enabled or not store.directory(project).is_dir():
        return []
    config = _asked_for(project, config)
    try:
        index = store.rebuild(project, now=now)
        if not commit or repo is None:
            return publish(project, index, config)
        return _publish_and_commit(project, index, config, repo, run)
    except (RalphError, OSError) as error:
        return [f"what was learned was not published: {error}"]


def publish(
    project: Project, index: Index, config: LearningSection, *, memory: bool = True
) -> list[str]:
    """Write the skills and, if asked, the block; returns what was done, in words."""
    if config.holdout:
        return [HELD_OUT]
    lost, root = _lost(project, index), project.root
    done = skills.publish(root, index, config.skills, lost)
    return done + (memory_file.publish(root, index, config.memory, lost) if memory else [])


def _lost(project: Project, index: Index) -> frozenset[str]:
    """What was fit to be published here and is not any more, and what a person forgot."""
    fit = {pattern.id for pattern in index.patterns if pattern.is_published}
    decisions = store.load_decisions(project)
    forgotten = {decided.id for decided in decisions if decided.word == "forgotten"}
    return (store.add_known(project, fit) | forgotten) - fit


def _asked_for(project: Project, config: LearningSection) -> LearningSection:
    """The settings without files that are not there and that nobody named."""
    target, style, memory = (
        memory_file.target(project.root, config.memory),
        config.skills,
        config.memory,
    )
    if style is SkillStyle.AUTO and not (project.root / ".claude/skills").is_dir():
        style = SkillStyle.OFF
    if memory is MemoryFile.AUTO and not (target and target.exists()):
        memory = MemoryFile.OFF
    return msgspec.structs.replace(config, skills=style, memory=memory)


def _publish_and_commit(
    project: Project, index: Index, config: LearningSection, repo: Repository, run: str
) -> list[str]:
    if problems := tuple(repo.problems()):
        return [f"what was learned was not published: {problems[0].message}"]
    prefix = project_prefix(repo.root, project.root)
    target = memory_file.target(project.root, config.memory)
    dirty = target is not None and f"{prefix}{target.name}" in repo.dirty_paths()
    before = target.read_bytes() if target is not None and target.is_file() else None
    done = publish(project, index, config, memory=not dirty)
    if dirty and target is not None:
        done.append(f"{target.name} has uncommitted changes: its learned block was left as it is")
    paths = skills.places(project.root, config.skills)
    paths += [target.name] if target is not None and not dirty else []
    refused = _commit(repo, [f"{prefix}{path}" for path in paths], run)
    if not refused:
        return done
    if target is not None and not dirty:
        target.unlink(missing_ok=True) if before is None else target.write_bytes(before)
    specs = literal_pathspecs(f"{prefix}{path}" for path in paths)
    repo.git.writing().attempt("reset", "--quiet", *PATHSPECS_ON_STDIN, stdin=specs)
    return [f"what was learned was not committed: {refused}"]


def _commit(repo: Repository, paths: list[str], run: str) -> str:
    """Why the commit was refused; empty where it was not, or there was nothing to commit."""
    message = with_trailers("Learned from this run", {"Ralph-Run": run})
    try:
        result = commit_paths(repo, paths, message)
    except RalphError as error:
        return error.message
    return result.feedback if result.status is CommitStatus.REFUSED else ""
