"""Learnings as files: what is written is YAML, and whatever people make of it is read or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.learning import store
from ralphloop.learning.model import Learning, Note, NoteKind, NoteSource
from tests.learning.support import learning, note

TEXTS = st.text(max_size=80)
NOTES = st.builds(
    Note,
    kind=st.sampled_from(NoteKind),
    text=TEXTS.filter(bool),
    category=TEXTS,
    source=st.sampled_from(NoteSource),
    evidence=st.lists(TEXTS, max_size=3).map(tuple),
)
LEARNINGS = st.builds(
    Learning,
    task_id=TEXTS,
    outcome=st.sampled_from(["passed", "failed", "blocked", "set_aside"]),
    timestamp=TEXTS,
    notes=st.lists(NOTES, max_size=4).map(lambda notes: tuple(sorted(notes, key=_by_section))),
    captured=st.booleans(),
    run=TEXTS,
    iteration=st.integers(0, 10**6),
    commit=TEXTS,
    files=st.lists(TEXTS, max_size=3).map(tuple),
    carried=st.lists(TEXTS, max_size=3).map(tuple),
)


def _by_section(one: Note) -> int:
    return list(store.SECTIONS).index(one.kind)


@given(LEARNINGS)
def test_what_is_written_is_read_back(one: Learning) -> None:
    """Any learning survives its file, whatever characters it holds."""
    assert store.parse(store.render(one).decode()) == one


def test_PRD_phase3_the_shape_is_the_documented_one() -> None:
    """A file written by hand in the documented shape, quotes or not, is a learning."""
    one = store.parse("""\
---
task_id: US-7
outcome: success
timestamp: 2026-01-17T10:00:00Z
successes:
  - pattern: "use the factory"
    category: testing
    reusable: true
failures:
  - pattern: "wrong import order"
    lesson: 'let the linter sort: it knows'
discoveries:
  - description: >
      a text that goes
      over two lines
    category: gotcha
""")
    assert (one.task_id, one.outcome) == ("US-7", "passed")
    assert [(n.kind, n.text.strip(), n.lesson) for n in one.notes] == [
        (NoteKind.SUCCESS, "use the factory", ""),
        (NoteKind.FAILURE, "wrong import order", "let the linter sort: it knows"),
        (NoteKind.DISCOVERY, "a text that goes over two lines", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a mapping",
        "- a\n- list\n",
        "task_id: [1, 2\n",
        "outcome: passed\n",
        "task_id: 3\noutcome: passed\ntimestamp: x\n",
        'task_id: "a"\noutcome: "passed"\ntimestamp: "x"\nsuccesses: "none"\n',
        'task_id: "a"\noutcome: "passed"\ntimestamp: "x"\nsuccesses:\n  - pattern: 7\n',
        "task_id: !!python/object/apply:os.system [echo]\n",
        "a: &a [x]\n" + "b: [" + "*a, " * 100 + "*a]\n",
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    """What is no learning is a ValueError, never a guess and never anything worse."""
    with pytest.raises(ValueError):
        store.parse(text)


def test_the_file_reads_well() -> None:
    """A person finds sections, entries and provenance at a glance."""
    text = store.render(
        learning("US-1", note("say it", evidence=("file a.py",)), commit="c0")
    ).decode()
    assert 'discoveries:\n  - description: "say it"\n    category: "general"\n' in text
    assert '    evidence: ["file a.py"]\nprovenance:\n' in text
    assert "successes: []\nfailures: []\n" in text
