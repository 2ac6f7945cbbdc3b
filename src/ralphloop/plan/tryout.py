"""Trying the commands of a plan once, after a person said yes to just that.

A command that is green before anything was done proves nothing and is marked so; one that cannot
start is taken out; a red one is what a story begins with.  They run as checks do, in the sandbox
where there is one, there without a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from ralphloop.agents.environment import find_program
from ralphloop.core.model import CheckStatus
from ralphloop.core.story import Story
from ralphloop.errors import RalphError
from ralphloop.loop.confine import check_box, tried
from ralphloop.loop.prepare import Setup
from ralphloop.proc.sandbox import NONE, Box
from ralphloop.repo.checks import cannot_start, check_of, run_checks, why_red

NOT_TRIED = "not tried"
GREEN = "green: proves nothing yet"
RED = "red"
_PATIENCE_S = 120.0


class TriedVerify(NamedTuple):
    """What became of one command."""

    story: str
    mark: str  # empty: it is refused
    words: str = ""


def box_for(setup: Setup) -> tuple[Box | None, str]:
    """The sandbox that commands are tried in, and how that is said."""
    try:
        box = check_box(setup.config, setup.project, setup.repo, os.environ)
        reason, _ = tried(box, setup.project.root)
    except RalphError as error:
        reason = error.message
    if reason:
        return None, f"with your own rights: no sandbox works here ({reason})"
    return msgspec.structs.replace(box, network=NONE, relay=""), "in the sandbox, without a network"


def try_all(
    setup: Setup, stories: tuple[Story, ...], box: Box | None, tell: Callable[[str], None]
) -> Iterator[TriedVerify]:
    """Run each command once."""
    root = setup.project.root
    for story in stories:
        if not story.verify:
            continue
        there = find_program(story.verify[0], os.environ, root) is not None
        trouble = cannot_start(story.verify, found=there)
        if trouble is None:
            check = check_of(story.verify, min(_PATIENCE_S, setup.config.checks.timeout), box)
            tell(f"trying {check.name}")
            (result,) = run_checks([check], root)
            trouble = (
                why_red(story.verify, result.output_tail) if result.status == "failed" else None
            )
            if trouble is None:
                green = result.status is CheckStatus.PASSED
                yield TriedVerify(story.id, GREEN if green else RED)
                continue
        yield TriedVerify(story.id, "", trouble.words)
