"""Claims: the closed forms that make one, and what only sounds like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.text.claims import (
    claims_completion,
    question_to_person,
    says_already_done,
    says_done,
)

LOOKALIKES = json.loads((Path(__file__).parent / "lookalikes.json").read_text())

# every phrase of the documents this is built from
WHOLE_PHRASES = [
    "All tests pass",
    "All stories complete",
    "All the stories are complete",
    "Project complete",
    "The project is now complete",
    "Nothing left to do",
    "There is nothing left to do",
    "Implementation complete",
    "All tasks completed",
    "All tasks complete",
    "All tasks finished",
    "COMPLETE",
    "100% complete",
]

PHRASES = [
    "done",
    "complete",
    "finished",
    "all tasks complete",
    "all tasks finished",
    "implementation complete",
    "nothing to do",
    "no changes needed",
    "already implemented",
    "no further action",
]

STATED = [
    "All tests pass and the project is complete.",
    "All tests passed (214 passed, 3 warnings).",
    "The full test suite is green.",
    "All tests and the build pass.",
    "The full test suite, lint and type checks pass.",
    "Project complete, nothing left to do.",
    "The project is now fully implemented.",
    "The whole application is done.",
    "Implementation complete; the project is complete.",
    "Good news: the backlog is done.",
    "Progress: 100% complete",
    "All tasks completed.",
    "All requirements are met.",
    "12 of 12 stories are done.",
    "All done.",
    "Nothing remains to be done.",
    "There is no work left to do.",
    "I finished the whole project.",
    "Wired the last route. COMPLETE.",
    "The two failing tests are fixed.\n\nAll stories are complete.",
    "All stories are complete with all checks green.",
    "All user stories have now been implemented and every acceptance criterion is satisfied.",
    "Every requirement in the PRD has been implemented and tested.",
    "No more tasks.",
    "All 42 tests are green.",
    "All tests pass locally.",
    "All stories marked complete.",
    "The full implementation is complete.",
    "There is nothing remaining.",
    "I ran the full suite, all tests pass, and committed.",
    "The work is finished: all stories have passed and nothing is left to do.",
    "The backlog is empty.",
    "All requested work is complete.",
    "It's complete: all stories are implemented.",
    "All tests pass. Fixed the crash when the input was empty; the error handling path is implemented and covered.",
]

CLAIMED = [
    "Done.",
    "All done.",
    "✅ Done",
    "Done, all checks pass.",
    "Implemented and all checks pass.",
    "Implemented, with tests for both paths.",
    "Status: Complete",
    "I am done with US-004.",
    "Story complete.",
    "The task is done.",
    "This task has been completed successfully.",
    "The work is done.",
    "That's done.",
    "US-004 done.",
    "`US-004` is complete.",
    "US-004 (CSV export) is complete.",
    "I have completed US-004.",
    "I've finished the story.",
    "I marked US-004 as done.",
    "All 5 acceptance criteria of US-004 are met.",
    "All requested changes have been made.",
    "Implementation complete.",
    "Nothing left to do in this story.",
    "No changes needed.",
    "No further action is required.",
    "The story was already implemented.",
    "US-004 is complete.\n\nLet me know if you have questions.",
    "US-004 is complete.\n\n```\nnot the last paragraph\n```",
    "The story is now complete and all acceptance criteria pass.",
    "US-004 has been implemented, tested and committed.",
    "Task complete! The exporter streams rows.",
    "Implementation of this story is complete.",
    "All acceptance criteria for US-004 have been met.",
    "Everything the story asks for is in place.",
    "The requested change is done.",
    "I've completed the implementation of US-004.",
    "US-004 – complete",
    "US-004 passes.",
    "Fixed.",
    "With that, US-004 is complete.",
    "It's all done.",
    "No further work is needed for this story.",
    "Nothing further to do for US-004.",
    "The story needs no changes.",
    "The requested behaviour already exists.",
    "It turns out the feature is already implemented.",
    "No changes are necessary: all acceptance criteria are already satisfied.",
    "No action needed.",
    "No changes required!",
    "US-004 is complete. US-005 is still open.",
]

NOT_CLAIMED = [
    "",
    "I am not done yet; the exporter needs one more pass.",
    "Not done.",
    "Not done yet.",
    "The story is not complete.",
    "The story isn't finished.",
    "US-004 is incomplete.",
    "US-004 is almost done.",
    "US-004 is 80% complete.",
    "US-004 will be done tomorrow.",
    "US-004 is done once the tests are green.",
    "Is US-004 done?",
    "US-004 is done, except for the docs.",
    "US-004 is done. Two tests still fail.",
    "US-004 is done. However, I could not run the tests.",
    "US-004's first criterion is done.",
    "Step 1 is done.",
    "Phase-2 is complete.",
    "The login form is complete; the password reset form is not done yet.",
    "The login form is complete.",
    "The first two criteria are finished.",
    "The story's first two criteria are finished; three more to go, so I am not done.",
    "Done: lexer, parser. Left: exporter.",
    "Done in 3.2s",
    "Finished in 0.42 seconds",
    "Done with the parser.",
    "Done the parser, now the exporter.",
    "Implemented the lexer.",
    "Implemented and documented the lexer.",
    "Implemented part of US-004.",
    "Fixed the crash when the input was empty.",
    "All tests pass.",
    "All checks passed!",
    "No changes were made.",
    "Nothing changed here.",
    "No changes needed in the vendor directory.",
    "Nothing to do for the Windows path, it already worked; continued with macOS.",
    "Looked at the queue code once more; nothing was changed in this round.",
    "The README says 'done'.",
    "The done callback fires twice.",
    "`done`",
    "> Done.",
    "```\nDone.\n```",
    "## Done",
    "Definition of done:\n- US-004 is complete",
    "US-004 is complete.\n\nThen I looked at the mail templates and moved them.",
    "Done. Well, almost: the exporter is missing.",
    "I think US-004 is done.",
    "US-004 may be done.",
    "US-004 should be done by now.",
    "Once US-004 is done I will start US-005.",
    "Let me know when the task is done.",
    "The task is done by the worker thread.",
    "This is done in the background.",
    "Completed orders are archived.",
    "The job is done every night.",
    "❌ Done",
    "Ready for review.",
    "Everything is working.",
    "US-003 is done. US-004 is in progress.",
    "US-004 is done. US-004 still needs docs.",
    "The project is complete (apart from US-7).",
]

ALREADY = [
    "Already implemented.",
    "This feature was already in place.",
    "Everything in the PRD is already implemented.",
    "All the requirements were already satisfied.",
    "Nothing to do.",
    "No changes needed.",
    "No code changes are required.",
    "I verified that the story is already implemented.",
    "The CSV export is already implemented and covered by tests.",
    "The story required no changes.",
    "This was already done in an earlier iteration.",
    "US-004 was already implemented in a previous iteration, so no changes were needed.",
    "The acceptance criteria are already met.",
    "This story has already been completed.",
    "No changes required.",
]

NOT_ALREADY = [
    "The story is complete.",
    "Done.",
    "Nothing left to do.",
    "No changes were made.",
    "Nothing changed here.",
    "Nothing was changed in this round.",
    "No changes in vendor.",
    "No changes needed in the vendor directory.",
    "No changes needed to the schema, only the loader was rewritten.",
    "Nothing to do for the Windows path, it already worked; continued with macOS.",
    "Nothing to do until the API key arrives.",
    "Nothing to do but wait.",
    "Nothing to do here yet, the exporter is missing.",
    "The lexer is already implemented; I added the parser.",
    "The model is already implemented. The API is still missing.",
    "Is it already implemented?",
    "The user says it is 'already implemented'.",
    "The story is not already implemented.",
    "If the story is already implemented, skip it.",
    "The story is already partly implemented.",
    "Added a check for already implemented stories.",
    "No changes needed.\n\nThen I rewrote the loader.\n\nAnd moved the tests.",
    "`No changes needed.`",
]

SHOWN_FIELDS = [
    "The parser takes STATUS: COMPLETE, with or without bold.",
    "The worker ends with status: done.",
    "A finished row reads\nstatus: done",
    "status: done",
    "STATUS: COMPLETE",
    "// status: done",
    "I left a comment for the reviewer: status: done",
    "For example:\n\nThe story is complete.",
]

# Written down before the forms were, without looking at them: how many are heard is a measure,
# not a promise, and it is written in docs/decisions.
FRESH_STORY = [
    "US-004 is complete.",
    "US-007 is ready for review.",
    "US-012 is implemented and all tests pass.",
    "The story is done and committed.",
    "This story is finished.",
    "Story US-003: Password reset is now complete.",
    "All five acceptance criteria hold.",
    "All acceptance criteria are satisfied.",
    "Every acceptance criterion of US-009 is met and covered by a test.",
    "I have finished US-004.",
    "I've implemented the story and committed the result.",
    "Finished US-011 (rate limiting).",
    "Completed US-005.",
    "Completed the rate limiter.",
    "The rate limiter is in place and works.",
    "The task has been completed.",
    "Task done.",
    "Done!",
    "✅ Done.",
    "That's it, the story is complete.",
    "Implementation of US-006 is finished; lint and tests are green.",
    "Everything the story asked for is there.",
    "The feature works end to end now.",
    "Work on US-002 is complete.",
    "I consider US-010 done.",
    "US-001 now passes.",
    "This wraps up US-008.",
    "No changes were necessary: the endpoint already exists.",
    "The story was already implemented in an earlier commit.",
    "Nothing had to be changed.",
]

FRESH_PROJECT = [
    "All stories are complete.",
    "Every story in prd.json passes.",
    "The backlog is clear.",
    "The project is finished.",
    "All 12 user stories are done.",
    "12 of 12 stories are complete.",
    "There is nothing left to do.",
    "Nothing remains to be done.",
    "No open stories remain.",
    "The whole PRD is implemented.",
    "All tasks are completed and all tests pass.",
    "Project complete.",
    "The PRD is fully implemented and every check is green.",
    "We are done here: every story passes.",
    "I have implemented all the stories.",
]

FRESH_LOOKALIKES = [
    "US-004 is nearly complete.",
    "US-004 is complete except for the migration.",
    "Once US-004 is complete, US-005 can start.",
    "The first half of the story is done.",
    "US-004 will be complete after the next iteration.",
    "The button now says Done.",
    'The label reads "All stories are complete".',
    "A task is complete when its checkbox is ticked.",
    "The story is complete. However, two tests still fail.",
    "The story is done, but the migration is missing.",
    "Is the project complete?",
    "If all stories are complete, the command exits with 0.",
    "All stories but one are complete.",
    "All tests pass except the flaky one.",
    "11 of 12 stories are complete.",
    "The backend is complete.",
    "The parser part is finished.",
    "Step 1 is done.",
    "Phase 2 complete.",
    "Not everything is done.",
    "I would not call the project complete.",
    "The README claims that the project is complete.",
    "Next: finish US-004.",
    "Remaining: US-005 and US-006.",
    "There is nothing left to do for the lexer.",
    "Nothing to do for an empty queue returns early.",
    "Returns early when there is nothing to do.",
    'The worker logs "nothing to do" and sleeps.',
    "Done with the first two criteria, the third comes next.",
    "The done column is sorted now.",
    "I added a `complete` flag.",
    "The migration has been started.",
    "The upload completes in two seconds.",
    "Completed orders are archived.",
    "All completed stories are listed on the page.",
    "The project is complete in theory.",
    "I think the story is complete.",
    "The story should be complete now.",
    "Hopefully US-004 is done.",
    "The plan:\n\nAll stories are complete.",
    "The final screen shows:\n\nProject complete.",
    "> The project is complete.",
    "```\nThe project is complete.\n```",
    "<!-- The project is complete. -->",
    "The story is complete.\n\nTwo tests are still red.",
    "- [ ] The story is complete.",
    "Acceptance criteria:\n- All tests pass.\n- The project is complete.",
    "The story is far from done.",
    "Almost done.",
    "Already implemented parts were left alone.",
]

ASKED = [
    "Should I use Postgres or SQLite? Please confirm before I go on (1).",
    "I need your approval to drop the table.",
    "Let me know how you want to proceed.",
    "I cannot proceed without your decision.",
    "Would you prefer tabs or spaces?",
    "Wired the form.\n\nBefore I go on: should we keep the old endpoint?",
    "Please choose: A or B.",
    "I need access to the staging database.",
    "Awaiting confirmation.",
    "How shall we proceed?",
    "Tell me which you prefer.",
    "Would you rather keep the old endpoint?",
    "Please share the logo file.",
]

NOT_ASKED = [
    "",
    "Do you want me to also add docs?",
    "What should happen on timeout: retry.",
    "Added the string 'Do you want to delete this file?'.",
    "`Should I use Postgres?`",
    "Users must confirm their address.",
    "Would you like me to open a PR?",
    "Any questions?",
    "Tell me if you want changes.",
    "The CLI asks the user which database they prefer.",
    "It waits for the user's answer before it goes on.",
    "I need this to be fast.",
    "Why should I use a lock here? Because two workers race.",
    "Does it work? Yes, see the test.",
    "Please run `make migrate` once.",
    '"Please confirm" is now translated.',
]


@pytest.mark.parametrize("text", WHOLE_PHRASES)
def test_every_completion_phrase_states_the_whole(text: str) -> None:
    """The phrases of the documents state that all is finished, bare and as a sentence."""
    assert says_done(text) is not None
    assert says_done(f"Moved the store.\n\n{text}.") is not None


@pytest.mark.parametrize("text", PHRASES)
def test_every_completion_or_no_work_phrase_claims_the_piece(text: str) -> None:
    """The phrases of the documents claim the piece at hand."""
    assert claims_completion(text) is not None


@pytest.mark.parametrize("text", STATED)
def test_a_statement_about_the_whole_counts(text: str) -> None:
    """A plain sentence that all of the work is finished is found."""
    assert says_done(text) is not None


@pytest.mark.parametrize("kind", LOOKALIKES)
def test_what_only_looks_like_it_does_not_count(kind: str) -> None:
    """Negated, conditional, asked, quoted, partial, hedged and withdrawn words state nothing."""
    assert [text for text in LOOKALIKES[kind] if says_done(text)] == []


@pytest.mark.parametrize("text", CLAIMED)
def test_a_claim_in_the_last_paragraph_counts(text: str) -> None:
    """The last paragraph states that the piece at hand is finished or needed no work."""
    assert claims_completion(text) is not None


@pytest.mark.parametrize("text", [*NOT_CLAIMED, *SHOWN_FIELDS])
def test_no_claim_is_read_into_other_words(text: str) -> None:
    """Parts, plans, doubts, quotations, fields and earlier paragraphs claim nothing."""
    assert claims_completion(text) is None


@pytest.mark.parametrize("text", ALREADY)
def test_work_that_was_there_before_is_recognised(text: str) -> None:
    """The agent says that nothing had to be done because it was there."""
    assert says_already_done(text) is not None


@pytest.mark.parametrize("text", NOT_ALREADY)
def test_idle_or_partial_work_is_not_already_done(text: str) -> None:
    """Having changed nothing is not the same as nothing having to be changed."""
    assert says_already_done(text) is None


def test_no_fresh_lookalike_is_taken_for_a_claim() -> None:
    """What was written to mislead misleads no reader."""
    readers = (says_done, claims_completion, says_already_done)
    assert [text for text in FRESH_LOOKALIKES if any(read(text) for read in readers)] == []


def test_most_fresh_statements_are_heard() -> None:
    """At least four of five statements that nobody tuned the forms to are heard."""
    heard = [text for text in FRESH_STORY if claims_completion(text)]
    heard += [text for text in FRESH_PROJECT if says_done(text)]
    assert len(heard) >= 0.8 * (len(FRESH_STORY) + len(FRESH_PROJECT))


def test_a_comment_is_no_paragraph() -> None:
    """What stands in an HTML comment is not the end of the answer."""
    answer = "US-004 is complete.\n\n<!-- end of\nthe answer -->\n"
    assert claims_completion(answer) == "US-004 is complete."


def test_the_sentence_itself_is_returned() -> None:
    """The report can show which words were taken as the statement."""
    text = "Rewrote the lexer. **All stories are complete.** Bye."
    assert says_done(text) == "**All stories are complete.**"


@pytest.mark.parametrize("text", ASKED)
def test_a_question_that_waits_is_found(text: str) -> None:
    """A question or request at the end of the answer is handed back."""
    assert question_to_person(text) is not None


@pytest.mark.parametrize("text", NOT_ASKED)
def test_other_questions_are_left_alone(text: str) -> None:
    """Offers, answered questions and questions of a user interface wait for nobody."""
    assert question_to_person(text) is None
