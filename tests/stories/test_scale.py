"""Ten thousand stories are no reason to wait."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.bench_stories import GOAL, best_cpu, load_next_mark, plain_json, write_prd
from ralphloop.stories.source import load
from tests.stories.builders import raw_story


def test_load_next_and_mark_stay_near_plain_json(tmp_path: Path) -> None:
    """With 10,000 stories the whole costs at most ten times reading and writing the JSON."""
    path = tmp_path / "prd.json"
    write_prd(path)
    ours, theirs = best_cpu(load_next_mark, path, rounds=2), best_cpu(plain_json, path, rounds=2)
    assert ours <= GOAL * theirs


def test_putting_back_thousands_of_claims_is_one_pass(tmp_path: Path) -> None:
    """An agent that marks everything costs one write, not one per story."""
    path = tmp_path / "prd.json"
    stories = [raw_story(n, status="todo") for n in range(5000)]
    path.write_text(json.dumps({"userStories": stories}))
    file = load(path)
    start = time.process_time()
    file.mark_all({story.id: True for story in file.list.stories})
    assert time.process_time() - start < 5
    assert load(path).list.passed == 5000
