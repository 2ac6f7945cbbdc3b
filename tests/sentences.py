"""Sentences of ours that several tests look for: a new wording is changed here, once."""

NEEDS_REVIEW = "needs review"  # the grade of a story that passed and that a person should look at
GO_ON = "ralph run --continue"  # the command that goes on where a run stopped
ALL_DONE = "run ended: all done"  # how the console tells that every story has passed
NOT_AGREED = "not agreed to"  # of lines of a repository that nobody said yes to
BY_A_PERSON = "by a person"  # of a mark, a wait or an edit that no agent made
NOT_LISTED = "no longer in the story list"  # of a story that only the journal remembers
LEFT_LANE = "left its lane"  # of a story that nobody goes on with where it was
HELD_FROM = "holds this work tree from "  # of another run that is here already
NEXT_PROMPT = "it goes into the next prompt"  # what becomes of a note
TRAILING_COMMA = (
    "a comma before the closing bracket"  # what is wrong with most JSON written by hand
)
DISK_LOW = "MB are free"  # of a disk that is nearly full
INTERNAL = "internal error"  # of a fault of ours
