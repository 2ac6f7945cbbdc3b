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
    "I have a question: should exports be zipped or plain?",
    "Which of these approaches do you want?",
    "Do you want A or B?",
    "Option A keeps the column, option B drops it. Which one should I take?",
    "Option A keeps the column, option B drops it. Which do you prefer?",
    "Please choose: A or B.",
    "Please advise.",
    "Please advise on how to proceed.",
    "Could you please tell me the name of the bucket?",
    "Can you confirm that the old API can go?",
    "What is the expected retention period? I need this to continue.",
    "I need the API key to continue.",
    "I need access to the staging database.",
    "I need credentials for the mail server before I can go on.",
    "I'm blocked: I need your input on the schema.",
    "Blocked. Waiting for clarification on the schema.",
    "Waiting for a decision on the data model.",
    "Awaiting further instructions.",
    "Awaiting confirmation.",
    "Before I proceed, could you clarify the format?",
    "Before I continue: which region should I deploy to?",
    "What would you like me to do?",
    "How do you want me to handle the conflict?",
    "How should I proceed?",
    "How shall we proceed?",
    "Let me know which option you'd like and I'll implement it.",
    "Let me know your preference.",
    "Let me know the database you prefer.",
    "Let me know when you have decided.",
    "Please let me know how to proceed.",
    "Tell me which you prefer.",
    "Should the export be CSV or JSON? Please let me know.",
    "Should deletes be soft or hard? I need to know before I go on.",
    "Is it OK to delete the old migrations?",
    "Do I have permission to force-push?",
    "May I have access to the bucket?",
    "Would you rather keep the old endpoint?",
    "Your call: Postgres or SQLite?",
    "It's your decision: A or B?",
    "I cannot continue without the API key.",
    "I can't go any further until the API key is there.",
    "Can you provide the spec?",
    "Please share the logo file.",
    "Please send me the credentials.",
    "Please answer these questions:\n\n1. Soft or hard delete?\n2. Which region?",
    "Questions for you:\n- Should I keep the v1 API?\n- Which port?",
    "I'd like your confirmation before deleting the table.",
    "I would need your confirmation before deleting the table.",
    "Once you confirm, I will delete the table.",
    "I'll proceed once you confirm.",
    "Reply with A or B.",
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
    "Would you like me to open a PR?",
    "Do you want me to run the linter too?",
    "Want me to continue?",
    "Should I keep going?",
    "Shall I go on with US-005?",
    "Can I help with anything else?",
    "Any questions?",
    "Questions? Ask away.",
    "Let me know if you'd like any changes.",
    "Let me know if you want me to continue.",
    "Let me know if something looks off.",
    "Please let me know if you need anything else.",
    "Tell me if you want changes.",
    "If you want the old behaviour back, tell me which flag to add.",
    "If you have a preference, let me know which one.",
    "Happy to adjust.",
    "Added a confirmation dialog: users must confirm before deleting.",
    "The CLI now asks which database to use.",
    "The CLI asks the user which database they prefer.",
    "The wizard asks: Which database do you prefer?",
    'The prompt reads "Which option do you prefer?"',
    "Added the label Which option do you prefer?",
    "The form waits for your input.",
    "The shell waits for input.",
    "It waits for the user's answer before it goes on.",
    "The agent waits for confirmation in interactive mode.",
    "Waiting for CI.",
    "Waiting for the server to start.",
    "The worker needs more information to route the job, so the payload carries it now.",
    "The handler needs your token.",
    "I need to update the docs.",
    "I need the parser to be pure, so I moved the clock out.",
    "I need this to be fast.",
    "We need more tests.",
    "I needed a decision here and took the simpler one.",
    "I decided to use SQLite. Should we need more later, Postgres is one flag away.",
    "Should we ever need Postgres, it is one flag away.",
    "Should the cache be warm? It is now.",
    "Why should I use a lock here? Because two workers race.",
    "How should I name it? I called it store.",
    "What should I do next? The list says US-005, so I took it.",
    "Which file holds the route? It is in app.py.",
    "Is the cache warm? Yes.",
    "Do we need a lock? No.",
    "Does it work? Yes, see the test.",
    "Could this race? Only with two workers.",
    "What happens if the file is missing? A clear error.",
    "FAQ: How do you reset the password? Use the link.",
    "How do you run it? `make run`.",
    "How would you test this? With a fake clock.",
    "Please run `make migrate` once.",
    "Please note the new flag.",
    "Please see the README.",
    "Please find the changes below.",
    "The error now says: please provide an API key.",
    "Shows 'Please provide the API key.' when it is missing.",
    '"Please confirm" is now translated.',
    "Renamed the button to Please confirm.",
    "The doc tells the reader to let me know how they want to proceed.",
    "You can tell me which option you prefer in the settings.",
    "I confirmed the fix. Could you believe it?",
    "What a ride! Did you know the old code slept?",
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


def test_a_bare_request_brings_the_question_before_it() -> None:
    """A request that names no question is shown with the question it stands for."""
    text = "Should the export be CSV or JSON? Please let me know."
    assert question_to_person(text) == text


def test_the_question_is_bounded() -> None:
    """A very long question is cut to one short line."""
    asked = question_to_person("Should I use " + "Postgres or " * 60 + "SQLite?")
    assert asked is not None
    assert len(asked) <= 300
