"""Claims of the piece at hand, and statements that nothing had to be done."""

from __future__ import annotations

import pytest

from ralphloop.core.statements import claims_completion, says_already_done

CLAIMED = [
    "Done.",
    "done",
    "All done.",
    "Finished!",
    "✅ Done",
    "**Done.** The importer streams rows now.",
    "Done, all checks pass.",
    "Done — all checks pass.",
    "Implemented and all checks pass.",
    "Implemented and tested.",
    "Implemented, with tests for both paths.",
    "Complete.",
    "Status: Complete",
    "I'm done.",
    "I am done with US-004.",
    "The story is complete.",
    "Story complete.",
    "This story is now fully implemented.",
    "The task is done.",
    "Task finished.",
    "This task has been completed successfully.",
    "The feature is complete.",
    "The work is done.",
    "It is done.",
    "That's done.",
    "US-004 is finished.",
    "US-004 done.",
    "US-004: done",
    "`US-004` is complete.",
    "Story US-004 is implemented and tested.",
    "US-004 (CSV export) is complete.",
    "US-004: CSV export is complete.",
    "I have completed US-004.",
    "Implemented US-004 and added tests.",
    "I've finished the story.",
    "This completes US-004.",
    "I marked US-004 as done.",
    "All acceptance criteria are met.",
    "All five acceptance criteria of US-004 are met.".replace("five ", "5 "),
    "Every acceptance criterion is satisfied.",
    "All requested changes have been made.",
    "Implementation complete for US-004 only. Next story is US-005.",
    "Implementation complete.",
    "The project is complete.",
    "Nothing left to do in this story.",
    "Nothing to do.",
    "No changes needed.",
    "No code changes were necessary.",
    "No further action is required.",
    "Already implemented.",
    "The story was already implemented.",
    "Wrote the exporter.\n\nUS-004 is complete.",
    "US-004 is complete.\n\nLet me know if you have questions.",
    "US-004 is complete. Would you like me to continue?",
    "US-004 is complete.\n\n```\nnot the last paragraph\n```",
    "US-004 is complete.\n\n---RALPH_STATUS---\nSTATUS: IN_PROGRESS\n---END_RALPH_STATUS---",
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
]

ALREADY = [
    "Already implemented.",
    "The story is already implemented.",
    "This feature was already in place.",
    "US-004 is already done; nothing to do.",
    "Everything in the PRD is already implemented.",
    "All acceptance criteria are already met.",
    "All the requirements were already satisfied.",
    "There was nothing to do.",
    "Nothing to do: the flag exists.",
    "Nothing to do.",
    "Nothing needs to be changed.",
    "No changes needed.",
    "No changes were necessary.",
    "No code changes are required.",
    "No further changes are needed for this story.",
    "The `--since` flag already exists in the report command, so there is nothing to do.",
    "I verified that the story is already implemented.",
    "I checked the exporter. It is already implemented and covered by tests.",
    "The CSV export is already implemented and covered by tests.",
    "The work was already there.\n\nThe checks are green.",
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


@pytest.mark.parametrize("text", CLAIMED)
def test_a_claim_in_the_last_paragraph_counts(text: str) -> None:
    """The last paragraph states that the piece at hand is finished or needed no work."""
    assert claims_completion(text) is not None


@pytest.mark.parametrize("text", NOT_CLAIMED)
def test_no_claim_is_read_into_other_words(text: str) -> None:
    """Parts, plans, doubts, quotations and earlier paragraphs claim nothing."""
    assert claims_completion(text) is None


@pytest.mark.parametrize("text", ALREADY)
def test_work_that_was_there_before_is_recognised(text: str) -> None:
    """The agent says that nothing had to be done because it was there."""
    assert says_already_done(text) is not None


@pytest.mark.parametrize("text", NOT_ALREADY)
def test_idle_or_partial_work_is_not_already_done(text: str) -> None:
    """Having changed nothing is not the same as nothing having to be changed."""
    assert says_already_done(text) is None
