"""The end of a run: skills and the block in a commit of their own, with respect for what is there."""

from __future__ import annotations

import pytest

from ralphloop.config.model import LearningSection
from ralphloop.learning import OWN_FILES, store
from ralphloop.learning.publish import publish_at_end
from ralphloop.project import Project
from ralphloop.repo.work_tree import OwnFiles, Repository
from tests.learning.support import NOON, area_notes, git, keep, learning, repository

CONFIG = LearningSection(skills="skills", memory="CLAUDE.md")
API = ".claude/skills/api-learned/SKILL.md"
SHARED = ".claude/learned.jsonl"


@pytest.fixture
def taught(project: Project) -> Project:
    """A repository whose stories taught something about the api."""
    keep(project, *(learning(f"api-{n}", *area_notes("api")) for n in range(2)))
    repository(project.root)
    return project


def ended(project: Project, config: LearningSection = CONFIG, *, commit: bool = True) -> list[str]:
    """End a run there."""
    repo = Repository.open(project.root) if commit else None
    return publish_at_end(project, repo, config, agent="claude", run="r1", now=NOON)


def test_what_was_learned_gets_a_commit_of_its_own(taught: Project) -> None:
    """One commit with exactly the generated files, named after the run; again is nothing new."""
    (taught.root / "work.txt").write_text("a person's unfinished work\n")
    assert len(ended(taught)) == 3
    changed = git(taught.root, "show", "--name-only", "--format=%s|%(trailers:key=Ralph-Run)")
    assert changed.splitlines()[0] == "Learned from this run|Ralph-Run: r1"
    assert set(changed.splitlines()[3:]) == {API, SHARED, "CLAUDE.md"}
    assert git(taught.root, "status", "--short") == "?? work.txt"
    assert ended(taught) == []
    assert git(taught.root, "rev-list", "--count", "HEAD") == "2"


def test_a_dirty_memory_file_is_left_alone(taught: Project) -> None:
    """A person's uncommitted words are neither changed nor committed; the skill still is."""
    (taught.root / "CLAUDE.md").write_text("half a sentence")
    words = ended(taught)
    assert any("uncommitted changes" in line for line in words)
    assert (taught.root / "CLAUDE.md").read_text() == "half a sentence"
    assert git(taught.root, "show", "--name-only", "--format=").splitlines() == [SHARED, API]


def test_a_refused_commit_leaves_no_dirt(taught: Project) -> None:
    """Where a hook says no, the memory file is put back and nothing stays staged."""
    (taught.root / "CLAUDE.md").write_text("# Rules\n")
    git(taught.root, "add", "CLAUDE.md")
    git(taught.root, "commit", "--quiet", "--message=rules")
    hook = taught.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no learning today\nexit 1\n")
    hook.chmod(0o755)
    (words,) = ended(taught)
    assert "no learning today" in words
    assert (taught.root / "CLAUDE.md").read_text() == "# Rules\n"
    repo = Repository.open(taught.root)
    assert repo.dirty_paths(OwnFiles(OWN_FILES)) == ()
    assert git(taught.root, "diff", "--cached", "--name-only") == ""
    hook.unlink()
    assert ended(taught)
    assert git(taught.root, "status", "--short") == ""


def test_ignored_files_are_written_and_not_committed(taught: Project) -> None:
    """Who ignores .claude/ keeps the skills to themselves."""
    (taught.root / ".gitignore").write_text(".ralph/\n.claude/\nCLAUDE.md\n")
    git(taught.root, "commit", "--quiet", "--all", "--message=ignore")
    ended(taught)
    assert (taught.root / API).exists()
    assert git(taught.root, "log", "-1", "--format=%s") == "ignore"


def test_a_repository_in_trouble_is_left_alone(taught: Project) -> None:
    """On a detached HEAD nothing is written."""
    git(taught.root, "checkout", "--quiet", "--detach")
    (words,) = ended(taught)
    assert "not published" in words
    assert not (taught.root / "CLAUDE.md").exists()


def test_without_commits_the_files_are_only_written(taught: Project, project: Project) -> None:
    """`git.commit = "never"` and projects without git get the files, no commit."""
    ended(taught, commit=False)
    assert (taught.root / API).exists()
    assert git(taught.root, "rev-list", "--count", "HEAD") == "1"


def test_no_git_at_all(project: Project) -> None:
    """A project without a repository learns too."""
    keep(project, *(learning(f"api-{n}", *area_notes("api")) for n in range(2)))
    assert publish_at_end(project, None, CONFIG, agent="claude", run="r1", now=NOON)
    assert (project.root / API).exists()


def test_in_a_subdirectory_of_the_repository(project: Project) -> None:
    """Only the project's own files are committed, by their place in the repository."""
    repository(project.root)
    inner = Project(project.root / "packages/api")
    inner.directory.mkdir(parents=True)
    keep(inner, *(learning(f"api-{n}", *area_notes("api")) for n in range(2)))
    ended(inner)
    paths = git(project.root, "show", "--name-only", "--format=").splitlines()
    assert paths == [f"packages/api/{name}" for name in (SHARED, API, "CLAUDE.md")]


def test_switched_off_or_empty_does_nothing(taught: Project, project: Project) -> None:
    """No learning, no files, no words."""
    assert ended(taught, LearningSection(enabled=False)) == []
    assert not (taught.root / "CLAUDE.md").exists()


def test_trouble_at_the_end_is_words(taught: Project) -> None:
    """Decisions that cannot be read are not taken for none."""
    (store.directory(taught) / "decisions.yaml").write_text("- [broken")
    (words,) = ended(taught)
    assert "decisions.yaml" in words
    assert not (taught.root / "CLAUDE.md").exists()
