"""A few files kept as a commit under a ref; work tree, index and branch do not move."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from ralphloop.workspace.commit_message import with_trailers
from ralphloop.workspace.repo import Repository


def keep_files(repo: Repository, ref: str, files: Mapping[str, bytes]) -> None:
    """Keep these contents, by paths from the repository's root, on top of HEAD."""
    head = repo.head()
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        git = repo.git.writing().adapted(env={"GIT_INDEX_FILE": f"{place}/index"})
        if head is not None:
            git.run("read-tree", head)
        for path, content in files.items():
            blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = git.line("write-tree")
    parents = ("-p", head) if head is not None else ()
    message = with_trailers("settings that were changed while an agent worked", {})
    git.run("update-ref", ref, git.line("commit-tree", tree, *parents, "-m", message))
