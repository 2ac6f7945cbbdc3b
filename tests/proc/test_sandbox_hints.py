"""What is said of a file that the sandbox kept from being written."""

from __future__ import annotations

from ralphloop.proc.sandbox import in_words


def test_a_cache_is_offered_by_the_line_that_allows_it() -> None:
    """The person copies one line."""
    said = in_words(["/home/ada/.cache/tool/x.lock"])
    assert said[0].startswith('to allow it: [sandbox] write = ["/home/ada/.cache/tool"]')


def test_gits_own_directory_is_never_offered_to_be_written() -> None:
    """Its hooks and settings would be the agent's; there is a setting that guards just these."""
    said = in_words(["/home/ada/project/.git/index.lock"])
    assert said == [
        'to let it use git: [sandbox] git = "guarded"'
        " (the sandbox kept /home/ada/project/.git/index.lock from being written)"
    ]
