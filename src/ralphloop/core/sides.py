"""Whose word a changed file is.

What judged before the story began is the person's: tests, the story's own command and what it
reads, settings of runners, recipes, expected outputs.  A change there that is needed for green is a
changed expectation, and proves nothing by itself.  New tests are the agent's.  What the story was
to change is the product.  Where nobody can say, it is found out by running.
"""

from enum import StrEnum

from ralphloop.core import Value


class Side(StrEnum):
    PERSON = "the person's"
    AGENT = "the agent's tests"
    PRODUCT = "the product"
    UNKNOWN = "unknown"
    NEITHER = "neither"  # prose


class PathFacts(Value, frozen=True, kw_only=True):
    """What is known of a changed path."""

    existed: bool  # when the story began
    is_test: bool = False  # by its name, or because a runner obeys it
    judges: bool = False  # a command that judges runs it, includes it or reads it
    is_source: bool = False
    is_prose: bool = False
    named_by_product: bool = False  # a file that does not judge names it
    named_by_judges: bool = False


def side_of(facts: PathFacts) -> Side:
    if facts.is_test or facts.judges:
        return Side.PERSON if facts.existed else Side.AGENT
    if facts.is_prose:
        return Side.NEITHER
    if facts.is_source or not facts.existed:
        return Side.PRODUCT
    if facts.named_by_judges and not facts.named_by_product:
        return Side.PERSON
    if facts.named_by_product and not facts.named_by_judges:
        return Side.PRODUCT
    return Side.UNKNOWN
