"""The spec file a story belongs to, if it lies inside the repository.

A story list is untrusted and a spec ends up in a prompt, so `../../etc/passwd`, absolute paths,
links that lead out and git's own directory are errors, not reads.
"""

from __future__ import annotations

import os
from pathlib import Path

from ralphloop.core.story import Story
from ralphloop.errors import InputError
from ralphloop.stories.names import label, quoted


def resolve_parent_spec(story: Story, *, specs_dir: Path, repo_root: Path) -> Path | None:
    """The real path of the story's spec, looked for in the specs directory, then the root."""
    if story.parent_spec is None:
        return None
    if Path(story.parent_spec).is_absolute():
        raise _error(story, "must be relative to the repository")
    root = Path(os.path.realpath(repo_root))
    candidates = [base / story.parent_spec for base in dict.fromkeys((specs_dir, repo_root))]
    for candidate in candidates:
        # Not Path.resolve: it raises on loops of links.
        real = Path(os.path.realpath(candidate))
        if _is_inside(real, root) and _is_file(real):
            return real
        if os.path.lexists(candidate) and not _is_inside(real, root):
            raise _error(story, "leads out of the repository")
    if not any(_is_inside(Path(os.path.realpath(path)), root) for path in candidates):
        raise _error(story, "leads out of the repository")
    looked = " or ".join(str(base) for base in dict.fromkeys((specs_dir, repo_root)))
    raise _error(story, f"is not a file in {looked}")


def _is_inside(real: Path, root: Path) -> bool:
    return real.is_relative_to(root) and ".git" not in real.relative_to(root).parts


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long for the file system
        return False


def _error(story: Story, reason: str) -> InputError:
    return InputError(
        f"{quoted(story.parent_spec or '')} {reason}",
        "Point parent_spec to a file of this repository, or remove it.",
        place=f"story {label(story.id)}: parent_spec",
    )
