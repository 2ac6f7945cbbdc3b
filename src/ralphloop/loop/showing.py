"""Which named test speaks of which criterion of a story that was tried."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from ralphloop.core.criteria import CriterionEvidence, evidence_for
from ralphloop.core.grading import VERIFY
from ralphloop.core.model import Evidence
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import verify_was
from ralphloop.core.sentences import short_name
from ralphloop.loop.begin import Round
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.beneath import read
from ralphloop.repo.named import file_of

_MOST_TESTS = 400
_LARGEST_FILE = 512 * 1024
_LONGEST_TEXT = 4_000


def criteria_shown(
    place: Workspace, begun: Round, evidence: Evidence
) -> tuple[CriterionEvidence, ...]:
    """For each criterion of the story what shows that it is met."""
    story = begun.story
    if story is None:
        return ()
    checks = evidence.checks or ()
    trial = evidence.trial or Trial()
    own = (*trial.proven, *trial.reached, *trial.unloadable, *trial.vacuous)
    reports = [check.report for check in checks if check.report is not None]
    passed = [name for report in reports for name in report.passed]
    names = list(dict.fromkeys((*own, *passed)))[:_MOST_TESTS]
    now = next((check.status for check in checks if check.name == VERIFY), None)
    return evidence_for(
        story.criteria,
        trial,
        dict(_texts(place, names)),
        verify=now,
        verify_was=verify_was(begun.state, story),
    )


def _texts(place: Workspace, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What each test is written like; where its text cannot be told apart, its name alone."""
    by_file: dict[str, Mapping[str, str]] = {}
    for name in names:
        file = file_of(name)
        if file not in by_file:
            by_file[file] = _functions(place, file) if file.endswith(".py") else {}
        yield name, by_file[file].get(short_name(name), "")


def _functions(place: Workspace, file: str) -> dict[str, str]:
    """The texts of the functions of a Python file, by name."""
    try:
        content = read(place.root, file) or b""
        text = content[:_LARGEST_FILE].decode("utf-8", "replace")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}
    lines = text.splitlines()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(tree) if isinstance(node, kinds))
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])[:_LONGEST_TEXT]
        for node in nodes
    }
