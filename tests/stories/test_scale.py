"""Ten thousand stories are no reason to wait."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.bench_stories import GOAL, best_cpu, load_next_mark, plain_json, write_prd
from ralphloop.stories.source import load, mark
from tests.stories.builders import raw_story
from tests.timing import assert_linear


def test_load_next_and_mark_stay_near_plain_json(tmp_path: Path) -> None:
    """With 10,000 stories the whole costs at most ten times reading and writing the JSON."""
    path = tmp_path / "prd.json"
    write_prd(path)
    ours, theirs = best_cpu(load_next_mark, path, rounds=2), best_cpu(plain_json, path, rounds=2)
    assert ours <= GOAL * theirs


def test_putting_back_thousands_of_claims_is_one_pass(tmp_path: Path) -> None:
    """An agent that marks everything costs one write, not one per story."""

    def made(count: int) -> Path:
        path = tmp_path / f"{count}.json"
        stories = [raw_story(n, status="todo") for n in range(count)]
        path.write_text(json.dumps({"userStories": stories}))
        return path

    def marked(path: Path) -> None:
        file = load(path)
        mark(path, {story.id: True for story in file.list.stories})

    assert_linear(made, marked, 500)
    assert load(tmp_path / "4000.json").list.passed == 4000
