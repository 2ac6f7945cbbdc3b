"""10,000 stories: load + next + mark against json.load + json.dump of the same file.

Prints CPU seconds of both, best of several rounds, and their ratio; the goal is at most 10.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ralphloop.core.planning import ready
from ralphloop.stories.source import load, mark

STORIES = 10_000
ROUNDS = 5
GOAL = 10.0


def write_prd(path: Path, count: int = STORIES) -> None:
    """A flat prd.json of the usual make, the first half of it done."""
    stories = [
        {
            "id": f"US-{number:05}",
            "title": f"Add the priority field to form {number}",
            "description": "As a user I want to see what matters first so that I can plan my day.",
            "acceptanceCriteria": [
                "The field is shown in the form",
                "It is kept over a reload",
                "Typecheck passes",
                "Tests pass",
            ],
            "priority": number % 7,
            "passes": number < count // 2,
            "notes": "",
            "dependsOn": [f"US-{number - 1:05}"] if number % 3 else [],
        }
        for number in range(count)
    ]
    root = {"project": "bench", "branchName": "ralph/bench", "userStories": stories}
    path.write_text(json.dumps(root, indent=2) + "\n")


def load_next_mark(path: Path) -> None:
    """What the loop does with the file around one story."""
    story = next(iter(ready(load(path).list)), None)
    if story is not None:
        mark(path, {story.id: True})


def plain_json(path: Path) -> None:
    """The least anybody could do who rewrites the file."""
    with path.open() as source:
        data = json.load(source)
    with path.with_suffix(".copy").open("w") as target:
        json.dump(data, target, indent=2)


def best_cpu(work: Callable[[Path], None], path: Path, rounds: int = ROUNDS) -> float:
    """CPU seconds of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work(path)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "prd.json"
        write_prd(path)
        size = path.stat().st_size / 1e6
        ours, theirs = best_cpu(load_next_mark, path), best_cpu(plain_json, path)
    print(f"{STORIES} stories, {size:.1f} MB")
    print(f"load + next + mark     {ours * 1000:8.1f} ms CPU")
    print(f"json.load + json.dump  {theirs * 1000:8.1f} ms CPU")
    print(f"ratio                  {ours / theirs:8.2f}   (goal: at most {GOAL:g})")


if __name__ == "__main__":
    main()
