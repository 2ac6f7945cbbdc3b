"""Found by Python when it starts: carries mutants into tests, and into what they start.

A module of the same name that stood behind this one is imported as it would have been.
"""
# mypy: ignore-errors
# ruff: noqa: INP001, PTH100, PTH120, PTH123

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _is_unittest():
    """This very process is `python -m unittest`, not one that is about to start it."""
    words = getattr(sys, "orig_argv", None)
    if words is None:
        try:
            with open("/proc/self/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")]
        except OSError:
            return False
    if "-m" not in words:
        return False
    at = words.index("-m")
    before = [word for word, last in zip(words[1:at], words[:at]) if last not in ("-W", "-X")]  # noqa: B905
    return words[at + 1 : at + 2] == ["unittest"] and all(word[:1] == "-" for word in before)


if "RALPH_MUTANT_TEXTS" in os.environ:
    import ralph_mutants

    ralph_mutants.join_in()
elif "RALPH_MUTANTS_JOB" in os.environ and _is_unittest():
    import ralph_mutants_unittest

    ralph_mutants_unittest.listen()
elif "RALPH_MUTANTS_JOB" in os.environ:
    import ralph_mutants

    ralph_mutants.await_pytest()

# Import the module that Python would have found without ours.
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
_ours = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError:
    sys.modules["sitecustomize"] = _ours
if "RALPH_MUTANTS_JOB" in os.environ:
    sys.path.append(_HERE)  # a plugin of pytest is yet to be found there
