"""Parent specs are read from inside the repository only."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.errors import InputError
from ralphloop.stories.source import resolve_parent_spec
from tests.stories.builders import story


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with specs inside and secrets outside."""
    root = tmp_path / "repo"
    (root / "docs" / "specs").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("token")
    (root / "S01.md").write_text("at the root")
    (root / "docs" / "S02.md").write_text("beside")
    (root / "docs" / "specs" / "S01.md").write_text("in specs")
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "repo-secret").write_text("outside, with the root as prefix")
    (root / "link.md").symlink_to(tmp_path / "secret")
    (root / "inside.md").symlink_to("S01.md")
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    return root


def resolve(repo: Path, parent_spec: str | None) -> Path | None:
    """Resolve a spec for a story file in docs/specs."""
    return resolve_parent_spec(
        story("US-7", parent_spec=parent_spec), specs_dir=repo / "docs" / "specs", repo_root=repo
    )


@pytest.mark.parametrize(
    "parent_spec, found",
    [
        ("S01.md", "docs/specs/S01.md"),
        ("./S01.md", "docs/specs/S01.md"),
        ("docs/S02.md", "docs/S02.md"),
        ("../S02.md", "docs/S02.md"),
        ("../../S01.md", "S01.md"),
        ("inside.md", "S01.md"),
    ],
)
def test_the_specs_directory_is_searched_before_the_root(
    repo: Path, parent_spec: str, found: str
) -> None:
    """A relative spec is found beside the story file, else from the repository's root."""
    assert resolve(repo, parent_spec) == (repo / found).resolve()


def test_a_story_without_a_spec_has_none(repo: Path) -> None:
    """No parent_spec, no file, no error."""
    assert resolve(repo, None) is None


@pytest.mark.parametrize(
    "parent_spec, reason",
    [
        ("../../../secret", "leads out of the repository"),
        ("../../../../../../etc/passwd", "leads out of the repository"),
        ("../../etc/passwd", "is not a file"),
        ("../../../repo-secret", "leads out of the repository"),
        ("link.md", "leads out of the repository"),
        ("out/secret", "leads out of the repository"),
        ("/etc/passwd", "must be relative"),
        (".git/config", "leads out of the repository"),
        ("docs/../.git/config", "leads out of the repository"),
        ("nothing.md", "is not a file"),
        ("docs", "is not a file"),
        ("loop", "is not a file"),
        ("x" * 5000, "is not a file"),
        ("a\nb", "is not a file"),
        ("~/.ssh/id_rsa", "is not a file"),
        ("$HOME/x", "is not a file"),
    ],
)
def test_whatever_is_not_a_file_of_the_repository_is_an_error(
    repo: Path, parent_spec: str, reason: str
) -> None:
    """Paths that lead out, and files that are not there, are exit 65 with the story's id."""
    with pytest.raises(InputError, match=reason) as caught:
        resolve(repo, parent_spec)
    assert caught.value.message.startswith("story US-7: parent_spec: ")
    assert len(caught.value.message) < 500
    assert "\n" not in caught.value.message


def test_an_absolute_path_is_refused_even_inside(repo: Path) -> None:
    """A path that names this machine is no path of the repository."""
    with pytest.raises(InputError, match="must be relative"):
        resolve(repo, str(repo / "S01.md"))
