"""Whether an agent asks a person something and waits.

In an unattended run nobody answers, so such a question is worth a warning.  Not every question mark
is one: offers and courtesies ("Would you like me to continue?"), questions the agent answers
itself, and questions that a user interface asks are not.  Two things count:

* a **request**: the agent says that it needs, or waits for, a person's word;
* a **choice**: it asks a person which way to go, and does not go on to take one itself.

Only the last paragraphs are read: a question that work followed was not waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralphloop.core import clauses
from ralphloop.core.patterns import Pattern
from ralphloop.core.prose import Sentence, last_sentences
from ralphloop.core.text import one_line

_SHOWN = 300  # characters of the question that are handed back
_READ = 24  # sentences from the end that are read
_PARAGRAPHS = 3

_ANSWER = (
    r"(?:answers?|reply|replies|input|decisions?|confirmation|response|feedback|approval|go-ahead"
    r"|clarifications?|clarity|guidance|instructions?|direction|preference|permission|choice"
    r"|sign-?off|consent|word|call|credentials|access|(?:more |further |additional |some )?"
    r"(?:information|details|context|info))"
)
_KEY = r"(?:\w+ ){0,2}(?:key|token|password|secret|account|login)"
_GO_ON = r"(?:proceed|continue|go on|go (?:any )?further|move (?:on|forward))"
_GIVE = (
    r"(?:confirm|clarify|advise|choose|decide|specify|provide|supply|share|answer|tell me|send|pick"
    r"|approve|grant|give me|indicate|reply|respond|select)"
)
_ASIDE = r"(?:^|[,;:—–] |\b(?:so|and|but|then|please|just|could you|can you|would you) )"


def _any_of(*alternatives: str, needs: tuple[str, ...] = ("",)) -> Pattern:
    return Pattern("|".join(alternatives), needs=needs)


_REQUEST = _any_of(
    r"(?:^|[,;:—–.] |\b(?:i am|i'm|we are|we're|i will be|now|currently|and|so) )"
    r"(?:a?waiting (?:for |on )?|await |stand(?:ing)? by for )"
    rf"(?:your\b|you\b|a person|a human|(?:a |an |the |further |some )*{_ANSWER})",
    r"\b(?:i|we)(?:'ll| will) (?:wait|pause|hold|stop)\b.{0,40}"
    r"\b(?:you|your|answer|decision|confirm\w*|hear)\b",
    rf"{_ASIDE}(?:please|kindly) {_GIVE}\b|{_ASIDE}please let me know[.!]*$",
    rf"{_ASIDE}(?:let me know|tell me|advise(?: me)?|confirm) (?:how|which|what|whether|where"
    r"|when you(?:'ve| have)? decided?|your|the|who)\b"
    r"(?! you think| it goes| it works| you thought)",
    r"^(?:reply|respond|answer) with\b",
    r"\b(?:i|we)(?: \w+)? (?:need|require) (?:(?:your|a|an|the|some|more|further|additional"
    rf"|explicit|final|product|design|business|human|user) )*{_ANSWER}\b",
    rf"\b(?:i|we)(?:'d| would) (?:like|need|appreciate) your {_ANSWER}\b",
    rf"\b(?:i|we) (?:\w+ )?need (?:you to|to know|(?:the|an?|your) {_KEY}\b"
    rf"|(?!to\b).{{1,60}}? (?:to|before (?:i|we)(?: can)?) {_GO_ON}\b)",
    rf"\b(?:i|we) (?:cannot|can't|can not|could not|couldn't|won't) {_GO_ON}\b.{{0,60}}"
    r"\b(?:without|until|unless)\b",
    rf"\b(?:requires?|needs?|depends on|up to) your (?:{_ANSWER}|attention)",
    rf"\b(?:once|after|when|as soon as) you {_GIVE}\b.{{0,40}}\b(?:i|we)(?:'ll| will| can)\b",
    rf"\b(?:i|we)(?:'ll| will| can)\b.{{0,60}}\b(?:once|after|when|as soon as) you {_GIVE}\b",
    r"\b(?:i|we) have (?:a|one|two|three|some|a few|\d+)(?: open)? questions?\b",
    needs=(
        *("wait", "stand", "you", "answer", "decision", "confirm", "hear", "please", "kindly"),
        *("let me know", "tell me", "advise", "reply", "respond", "need", "require", "question"),
        *("without", "until", "unless"),
    ),
)
_WISH = r"(?:want|like|prefer|need|expect|suggest|recommend|have in mind)"
_CHOICE = _any_of(
    r"\b(?:should|shall|may) (?:i|we)\b|\bwhat should (?:i|we)\b",
    r"\b(?:can|could) (?:i|we) (?:assume|use|remove|delete|change|drop|skip|rename|have)\b",
    r"\b(?:which|what|how|where|whose)\b.{0,120}\b(?:should (?:i|we)|shall (?:i|we)"
    rf"|(?:do|would) you {_WISH}|you(?:'d)? (?:want|like|prefer))\b",
    r"\b(?:do|would) you (?:prefer|rather)\b|\bdo you want (?!to\b|me to\b|us to\b).{0,80}\bor\b",
    r"\b(?:do you want|would you like) (?:me|us) to\b.{0,160}\bor\b",
    r"\b(?:could|can|would|will) you (?:please )?(?:confirm|clarify|provide|share|tell|specify"
    r"|advise|choose|decide|explain|give|send|point)\b",
    r"\b(?:is|would) it (?:be )?(?:ok|okay|fine|acceptable|alright|all right) "
    r"(?:if (?:i|we)|to|for me)\b|\bdo (?:i|we) have (?:your |the )?(?:permission|approval)\b",
    r"\b(?:what (?:is|are) )?your (?:preference|preferred|choice|decision|call)\b",
)
_OPEN_QUESTION = Pattern(r"(?:.{0,60}[,:] )?(?:which|what|how|where|whose)\b")
_OFFER = Pattern(
    r"\b(?:continue|proceed|keep going|go ahead|go on|carry on|move on|anything else|something else"
    r"|start (?:on |with )?the next|also|next story|next task|do more|help)\b"
)
_QUOTING = Pattern(
    r"\b(?:says?|said|asks?|asked|prompts?|prompted|dialogs?|message|shows?|reads?|text|label"
    r"|labels|strings?|button|title|modal|displays?|question is|questions? (?:like|such)|wonder"
    r"|placeholder|copy|confirms? with|i18n|translations?|headline)\b"
)
_LOOKED = r"(?:look|check|search|review|consider|notic|need|want|ask|stopp|paus|list|tri)"
_SOLVED = _any_of(
    r"^(?:yes|no|nope|neither|both)\b[,.:;—–-]|^(?:yes|no)$",
    r"(?:^|[,;:—–] )(?:so |then |and |therefore |for now,? )*(?:i|we)(?:'ve|'ll|'m| have| will| am"
    rf"| are)? ?(?:now |then |just |already |therefore |going |simply )*(?:to |with )?(?!{_LOOKED})"
    r"(?:\w+ed|went|go|going|chose|choose|use|using|keep|kept|took|take|made|make|put|set|wrote|did"
    r"|stuck|pick|assume|default|proceed|opt)\b",
    r"^(?:going with|chose|decided|picked|settled|assuming|used|kept|because|the answer|answer"
    r"|opted|went with|in the end|for now)\b",
)
_POLITE = Pattern(
    r"(?:please )?(?:just )?(?:let me know|tell me) (?:if|should you|what you think|how it goes"
    r"|how it works)\b|(?:please )?(?:feel free|reach out|ping me|just ask)\b"
    r"|(?:would|do) you (?:like|want) (?:me|us) to\b|(?:i'm |i am )?happy to\b"
    r"|(?:shall|should) (?:i|we) (?:continue|proceed|go on|go ahead|keep going|move on)\b"
    r"|(?:thanks|thank you|enjoy|hope this helps|if you (?:have|want|need|would|'d|like))\b"
    r"|is there anything else\b|anything else\b"
)


def question_to_person(text: str) -> str | None:
    """The question that the agent put to a person and waits on, or None."""
    last = _near_the_end(last_sentences(text))
    plains = [_asked(sentence) for sentence in last]
    asking = [
        index for index, words in enumerate(plains) if words and _asks(words, plains[index + 1 :])
    ]
    if not asking:
        return None
    first = asking[0]
    if first and plains[first - 1].endswith("?"):
        first -= 1  # "Soft or hard delete? Please let me know.": the request names no question
    return one_line(" ".join(sentence.text for sentence in last[first : asking[-1] + 1]), _SHOWN)


def is_polite_closing(sentence: str) -> bool:
    """True for an offer or a courtesy at the end of an answer."""
    words = clauses.plain(sentence.rstrip().rstrip("?"))
    return words is not None and _POLITE.match(words.words) is not None


def _near_the_end(found: Sequence[Sentence]) -> list[Sentence]:
    last = found[-_READ:]
    first = last[-1].paragraph - _PARAGRAPHS if last else 0
    return [sentence for sentence in last if sentence.paragraph > first]


def _asked(sentence: Sentence) -> str:
    """The words of a sentence that can ask, with their question mark; empty for the others."""
    if sentence.kind in {"heading", "open"}:
        return ""
    text = sentence.text.rstrip("*_ ")
    words = clauses.plain(text.rstrip("?"))
    if words is None:
        return ""
    return " ".join((words.words, *words.asides)) + ("?" if text.endswith("?") else "")


def _asks(words: str, after: Sequence[str]) -> bool:
    if words.startswith("if "):
        return False
    if request := _REQUEST.search(words):
        return not _QUOTING.search(words[: request.start()])
    if not words.endswith("?") or not (choice := _CHOICE.search(words)):
        return False
    if _QUOTING.search(words[: choice.start()]):
        return False
    if _OFFER.search(words, choice.end()) and not _OPEN_QUESTION.match(words):
        return False
    return not any(_SOLVED.search(answer) for answer in after)
