"""What a grade is worth: public tasks with reference solutions, replayed as stories.

SlopCodeBench (github.com/SprocketLab/slop-code-bench, MIT) has problems in checkpoints, each with a
specification, tests and a reference solution.  Nothing of it is part of this repository: the
command takes the `problems` directory of a clone.

Each checkpoint is a story on top of the reference solution of the one before.  The story's agent
brings the checkpoint's *core* tests; the marked ones (`functionality`, `error`, `regression`) stay
hidden and decide, with the core ones, whether its work is right.  Tests that the reference itself
fails on this machine are left out of both.  Five agents play:

reference   the reference solution, with the core tests
previous    the solution of the checkpoint before, touched and called done, without a test
emptied     the same, with a test file that has no test; the one of the checkpoint before loses its
table       a program that knows the answers to the core tests and nothing else
half        the reference with one of its new functions left empty, and the core tests that pass so

The headline is how often a `verified` story is right, and a `checked` one.
"""
