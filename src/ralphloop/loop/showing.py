"""Which named test speaks of which criterion of a story that was tried."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from ralphloop.core.criteria import CriterionEvidence, evidence_for
from ralphloop.core.grading import VERIFY
from ralphloop.core.model import Evidence
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import verify_was
from ralphloop.core.sealed_tests import SEALED, as_sealed
from ralphloop.core.sentences import short_name
from ralphloop.loop.begin import Round
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.beneath import read
from ralphloop.repo.named import file_of

_MOST_TESTS = 400
_LARGEST_FILE = 512 * 1024
_LONGEST_TEXT = 4_000


_Read = Callable[[str], bytes]


def criteria_shown(
    run: Run, place: Workspace, begun: Round, evidence: Evidence
) -> tuple[CriterionEvidence, ...]:
    """For each criterion of the story what shows that it is met; sealed tests say it best."""
    story = begun.story
    if story is None:
        return ()
    checks = evidence.checks or ()
    trial = evidence.trial or Trial()
    own = (*trial.proven, *trial.reached, *trial.unloadable, *trial.vacuous)
    passed = list(own)
    sealed = list[str]()
    for check in checks:
        if check.report is not None:
            (sealed if check.name == SEALED else passed).extend(check.report.passed)
    texts = _sealed_texts(run, place, sealed[:_MOST_TESTS]) if sealed else {}
    names = list(dict.fromkeys(passed))[:_MOST_TESTS]
    texts |= _texts(lambda file: read(place.root, file) or b"", names)
    now = next((check.status for check in checks if check.name == VERIFY), None)
    return evidence_for(
        story.criteria,
        trial,
        texts,
        verify=now,
        verify_was=verify_was(begun.state, story),
        turned_green=evidence.comparison.turned_green,
    )


def _sealed_texts(run: Run, place: Workspace, names: Iterable[str]) -> dict[str, str]:
    """The texts of sealed tests, by the names that people are told."""
    from ralphloop.loop.sealing import read_sealed  # few projects have any

    texts = _texts(lambda file: read_sealed(run, place, file), names)
    return {as_sealed(name): text for name, text in texts}


def _texts(read_file: _Read, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What each test is written like; where its text cannot be told apart, its name alone."""
    by_file: dict[str, Mapping[str, str]] = {}
    for name in names:
        file = file_of(name)
        if file not in by_file:
            by_file[file] = _functions(read_file, file) if file.endswith(".py") else {}
        yield name, by_file[file].get(short_name(name), "")


def _functions(read_file: _Read, file: str) -> dict[str, str]:
    """The texts of the functions of a Python file, by name."""
    try:
        text = read_file(file)[:_LARGEST_FILE].decode("utf-8", "replace")
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
