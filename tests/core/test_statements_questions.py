"""Questions to a person, told from courtesies, rhetoric and user-interface texts."""

from __future__ import annotations

import pytest

from ralphloop.core.statements import question_to_person

ASKED = [
    "Should I use Postgres or SQLite? Please confirm before I go on (1).",
    "Should I use Postgres or SQLite?",
    "Should I use Postgres or SQLite? Both would work. The PRD does not say.",
    "Which option do you prefer?",
    "Which database should I use: Postgres or SQLite?",
    "I need more information before proceeding: database choice?",
    "I need a decision before I can go on: soft or hard delete?",
    "I need your approval to drop the table.",
    "We need clarification on the retention period.",
    "I need to know which region the bucket lives in.",
    "Please provide the API key.",
    "Please confirm.",
    "To go on, please specify the port.",
    "Let me know how you want to proceed.",
    "Please let me know which of the two you prefer.",
    "Tell me whether the old endpoint must stay.",
    "Waiting for your answer",
    "I am waiting for your decision on the schema.",
    "Awaiting your approval.",
    "I'll wait for your confirmation before touching production.",
    "I cannot proceed without your decision.",
    "I can't continue until you provide the credentials.",
    "Could you clarify what the limit should be?",
    "How would you like me to handle duplicates?",
    "What should I do about the failing migration?",
    "Do you want me to keep the old path or to remove it?",
    "Would you prefer tabs or spaces?",
    "Is it okay if I delete the legacy table?",
    "May I rename the column?",
    "I have two questions:\n\n1. Which database should I use?\n2. Should we keep the old path?",
    "The schema is ambiguous. **Should I use soft deletes?**",
    "This requires your decision.",
    "Wired the form.\n\nBefore I go on: should we keep the old endpoint?",
]

NOT_ASKED = [
    "",
    "Wired the rate limiter into the gateway.",
    "Would you like me to continue?",
    "Wired the form. Would you like me to continue with the next story?",
    "Shall I continue?",
    "Should I proceed with the next story?",
    "Do you want me to also add docs?",
    "Let me know if you have questions.",
    "Please let me know if anything is unclear.",
    "Let me know what you think.",
    "Feel free to ask.",
    "If you prefer Postgres, let me know how to migrate.",
    "Is there anything else?",
    "What should happen on timeout: retry.",
    "Why did it fail? The lock was stale.",
    "Why did I choose SQLite? It needs no server.",
    "Should I use Postgres or SQLite? I went with SQLite.",
    "Should we cache this? No: the list is small.",
    "Which database should I use? The PRD says Postgres, so I used that.",
    "Added the string 'Do you want to delete this file?'.",
    'The dialog asks "Should I overwrite the file?" now.',
    "The dialog asks: Should I overwrite the file?",
    "The prompt now says: Please confirm your email.",
    "delete.confirm = 'Do you want to delete this file?'",
    "Do you want to delete this file?",
    "```\nShould I use Postgres or SQLite?\n```",
    "`Should I use Postgres?`",
    "> Should I use Postgres or SQLite?",
    "## Should I use Postgres or SQLite?",
    "Waiting for the build in the background.",
    "The worker is waiting for a response from the server.",
    "The form needs your email address.",
    "You need to run the migration once.",
    "I need to refactor the parser first.",
    "I needed more information and found it in the docs.",
    "Users must confirm their address.",
    "Please note that the cache is cold at start.",
    "Please review the changes.",
    "What does the user see? A spinner.",
    "Is the project complete?",
    "Should I use Postgres or SQLite?\n\nI read the settings.\n\nMoved the store.\n\nWrote tests.",
    "---RALPH_STATUS---\nRECOMMENDATION: Should I use Postgres?\n---END_RALPH_STATUS---",
]


@pytest.mark.parametrize("text", ASKED)
def test_a_question_that_waits_is_found(text: str) -> None:
    """The agent asks a person for a word and stops there."""
    assert question_to_person(text) is not None


@pytest.mark.parametrize("text", NOT_ASKED)
def test_other_questions_are_left_alone(text: str) -> None:
    """Courtesies, rhetoric, quotations and answered questions ask nobody."""
    assert question_to_person(text) is None


def test_the_question_is_handed_back_with_its_request() -> None:
    """The warning can show what was asked."""
    text = "Read the schema.\n\nShould I use Postgres or SQLite? Please confirm before I go on."
    assert question_to_person(text) == (
        "Should I use Postgres or SQLite? Please confirm before I go on."
    )


def test_the_question_is_bounded() -> None:
    """A very long question is cut to one short line."""
    asked = question_to_person("Should I use " + "Postgres or " * 60 + "SQLite?")
    assert asked is not None
    assert len(asked) <= 300
