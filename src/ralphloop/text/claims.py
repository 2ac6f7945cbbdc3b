"""What an agent says of its work, where it says it in so many words.

A claim is a **sentence of its own in the last paragraph**, made of nothing but known forms: "US-004
is complete, all tests pass."  An unknown word makes it another sentence, and that claims nothing.
It is taken back by what stands behind it in the paragraph ("However, two tests still fail"), and
never made by what was announced ("The banner reads:"), quoted, asked or wished for.  This is deaf
to most ways to say it, on purpose (decision 010): whoever wants to be heard writes a status block.

Three ranks of form: the **whole** work, the **piece** at hand, **no work** was needed.  "All tests
pass" speaks for the whole but claims no story: half a story can have green tests.
"""

from functools import partial

from ralphloop.text.lines import EXHIBIT, STORY, last_paragraph, own_lines
from ralphloop.text.plain import LazyRegex, clean, one_line

PROMISE = "<promise>COMPLETE</promise>"
_SHOWN = 300  # characters of a sentence that are handed back
_MAX_SENTENCE = 400  # a longer one is no such form


def _one_of(*forms: str) -> str:
    return f"(?:{'|'.join(forms)})"


_N = r"(?:\d[\d,]*|two|three|four|five|six|seven|eight|nine|ten|twelve)"
_ID = (
    r"(?:(?!(?:step|phase|part|milestone|stage|utf|sha|iso|rfc)-)[a-z][a-z0-9]{0,9}-\d{1,6}(?:\."
    r"\d{1,4})?|(?:story|task|ticket|issue) #?\d{1,6})"
)
_ITEMS = (
    r"(?:(?:user )?stor(?:y|ies)|tasks?|requirements?|features?|(?:work )?items?|tickets?|to-?dos?)"
)
_WHERE = (
    r"(?: (?:in|of|from|on) (?:the |this )?(?:prd(?:\.json)?|project|backlog|list|plan|spec|…))?"
)
_BE = r"(?: (?:is|are|was|were|(?:has|have)(?: (?:now|all|both))?(?: been)?)|'s|:| [-–—])?"
_VERY = r"(?: (?:now|all|both|fully|finally|completely|successfully|also|indeed|marked|as|100 ?%))*"
_DONE = r"(?:completed?|done|finished|implemented|feature[- ]complete)"
_DID = (
    r"(?:(?:i|we)(?:'ve| have)? )?(?:now |just |successfully |finally )*(?:completed|finished"
    r"|implemented)"
)

_PROJECT = (
    r"(?:(?:the|this|our|your) )?(?:(?:entire|whole|full) )?(?:project|prd|product|app"
    r"|application|backlog|implementation|development)(?: status)?"
)
_ALL = (
    rf"(?:(?:all|every|each)(?: of)?(?: the| our)?(?: (?:{_N}|remaining|open|planned"
    rf"|prd))* {_ITEMS}{_WHERE}|all(?: the| requested)? work|everything{_WHERE})"
)
_WHOLE = _one_of(
    rf"(?:{_PROJECT}{_WHERE}|{_ALL}|\d+ ?(?:/|of|out of) ?(?:the )?\d+ {_ITEMS}{_WHERE}"
    rf"){_BE}{_VERY} (?:{_DONE}|met|satisfied|pass(?:es|ed|ing)?|green)",
    rf"{_DID} (?:{_ALL}|(?:the|this) (?:whole |entire )?(?:project|prd|backlog))",
    r"all (?:done|completed?|finished)|completed?",
    r"(?:we|i)(?:'re|'m| are| am)(?: now| all)? (?:done|finished) here",
    rf"(?:there(?:'s| is| are) )?(?:nothing(?: is| else| more)?|no (?:more )?(?:{_ITEMS}"
    r"|work)(?: are| is)?) (?:left|remains?|remaining|open|pending)(?: to (?:do|be done"
    r"|implement))?",
    rf"(?:there are )?no (?:more|open|remaining|pending|unfinished) {_ITEMS}(?: (?:left|remain))?",
    rf"(?:progress:? )?100 ?% (?:{_DONE}|of (?:the )?{_ITEMS} {_DONE})",
    r"(?:the|our) (?:backlog|story list|to-?do list) is(?: now)? (?:clear|empty)",
)
_TESTS = (
    r"(?:all(?: of)?(?: the| our)?(?: \d[\d,]*)? tests|every test|\d+ ?(?:/|of) ?\d+ tests"
    r"|(?:the |our )?(?:full|entire|whole)(?: test)? suite)(?:(?:,|,? and) (?:the )?(?:lint\w*"
    rf"|type ?checks?|checks?|build))*{_BE}{_VERY} (?:pass(?:es|ed|ing)?"
    r"|green)(?: in \d[\d.]* ?(?:s|ms|m|seconds?|minutes?))?"
)
_THIS = (
    r"(?:(?:the |this |my |our |current |requested )*(?:(?:user )?story|task|ticket|feature|work"
    rf"|changes?|job|fix|issue|request)(?: {_ID})?|{_ID})"
)
_ASKED = (
    rf"(?:(?:(?:all|every|each)(?: of)?(?: the| its)?(?: {_N})?(?: acceptance)? criteri(?:a|on)|the"
    rf" acceptance criteria)(?: (?:of|for) {_THIS})?|all(?: the)? (?:requested|required) changes"
    r"|(?:what|everything) (?:it|(?:the|this) (?:story|task)) (?:asks|asked) for)"
)
_PIECE = _one_of(
    rf"(?:(?:the )?(?:implementation|work) (?:of|for|on) )?{_THIS}(?:: [^,;:]{{1,60}}?(?= (?:is"
    rf"|has)))?{_BE}{_VERY} (?:{_DONE}|in place|ready(?: for review)?|pass(?:es|ed))",
    rf"{_DID} (?:(?:the )?implementation (?:of|for) )?(?:{_THIS}|it)",
    rf"(?:i )?marked (?:{_THIS}|it) (?:as )?{_DONE}|(?:it|this|that)(?:'s| is"
    rf"| has been){_VERY} {_DONE}",
    rf"(?:(?:i|we)(?:'m|'re| am| are) )?(?:done|finished)(?: with {_THIS})?|fixed|implemented"
    r"|all set",
    rf"{_ASKED}{_BE}{_VERY} (?:met|satisfied|fulfilled|covered|made|in place|{_DONE}|pass|holds?)",
)
_CHANGES = (
    r"(?:no(?: (?:code|source|further|additional|more))* (?:changes?|work|action)"
    r"|nothing(?: (?:else|more|further))?)"
)
_NO_WORK = _one_of(
    rf"(?:there (?:is|was|are|were) )?{_CHANGES}(?: (?:is|are|was|were))?(?: needed| necessary"
    r"| required| to (?:do|make|change|be done)| (?:had|has|needed|needs) to be (?:changed|done))",
    rf"no further (?:action|changes?)|(?:it|this|{_THIS}) (?:needs|needed|required) no changes",
    rf"(?:(?:{_THIS}|{_ALL}|{_PROJECT}|it|this|that|{_ASKED}|the(?: (?!not\b"
    rf"|no\b)[a-z…-]+){{1,5}}?){_BE} )?already(?: been)?(?: (?:fully|completely))? (?:{_DONE}"
    r"|in place|there|exists?|met|satisfied)(?: (?:in|by|from) (?:an?|the) (?:earlier|previous"
    r"|prior|last) \w{1,20})?",
)
# What may stand beside a form and neither adds to it nor takes from it.
_BESIDE = _one_of(
    r"(?:all )?(?:the |its |both )?(?:(?:unit|integration|new|old|existing|full|whole"
    r"|\d+) )*(?:tests?|test suite|suite|checks?|lint(?:er|ing)?|type ?checks?|types|build"
    rf"|formatting)(?:{_BE}{_VERY} (?:pass(?:es|ed|ing)?|green|clean|fine))?",
    r"\d+ (?:tests )?(?:passed|skipped)(?: in [\d.]+ ?s)?|(?:0|no) (?:failed|failures|errors)",
    r"(?:i )?(?:also |fully )?(?:tested|verified|committed|pushed|documented|checked|working"
    r"|green)",
    r"covered by (?:a |new )?tests?|added (?:a )?tests?|with tests[^,;]{0,40}|works|that's it"
    r"|i (?:ran|verified|checked|committed|pushed) [^,;]{1,60}|committed [^,;]{1,40}",
)
_TAIL = (
    rf"(?: (?:(?:for|of|in|on|with) {_THIS}(?: only)?|now|again|today|successfully|here|locally"
    r"|in full|end[- ]to[- ]end|as (?:requested|planned|specified|required|described)|with (?:all"
    r"|no|zero) [^,;]{1,40}|without (?:any )?(?:errors?|warnings?|failures?|issues)))*"
)
_WHOLE_TAIL = _TAIL.replace(rf"(?:for|of|in|on|with) {_THIS}(?: only)?|", "")
_LEAD = LazyRegex(
    r"(?:(?:summary|results?|status|conclusion|update|verdict|final status|in summary|in short"
    r"|overall|finally|now|so|great|good news|yes|ok|with (?:this|that)(?: change)?|at this point"
    r"|(?:i (?:can )?confirm|i (?:have )?(?:verified|checked|confirmed)"
    r"|it turns out)(?: that)?)[,:]? ){0,2}"
)
_JOINT = LazyRegex(r"\s*(?:[;,—–]|\s-\s|:\s)\s*(?:(?:and|so) )?|\s+and\s+|[.!]*$")
_AT_JOINT = r"(?=[;,.!—–]|:\s|\s+[—–-]\s|\s+and\s|$)"


def _closed(forms: str, tail: str) -> LazyRegex:
    return LazyRegex(rf"{forms}{tail}{_AT_JOINT}")


_FORMS = {
    "whole": _closed(_WHOLE, _WHOLE_TAIL),
    "tests": _closed(_TESTS, _WHOLE_TAIL),
    "none": _closed(_NO_WORK, _TAIL),
    "piece": _closed(_one_of(_PIECE, _WHOLE), _TAIL),
    "beside": _closed(_BESIDE, _TAIL),
}
# one of these stands in every form; a sentence without any is not worth compiling them
_STEM = LazyRegex(
    r"complet|done|finish|implement|pass|green|nothing|no |already|met|satisf|fulfil|cover|hold"
    r"|clear|empty|ready|place|made|fixed|set"
)
_OF = LazyRegex(r"(\d+) ?(?:/|of|out of) ?(?:the )?(\d+)\b")

_DENIED = LazyRegex(
    r"\b(?:no|nothing|none|without|zero|0)\b(?: (?!but\b|except\b|longer\b)[\w-]+){0,4}"
)
_LACK = LazyRegex(
    r"\b(?:but|however|except|although|though|unfortunately|still|remain\w*|not|cannot|never"
    r"|fail\w*|to-?do|missing|pending|left|unfinished|incomplete|untested|broken|red|skipp\w*"
    r"|blocked|later|needs?|only|caveat|wip|stub\w*|half|partial\w*|yet|tbd|open|outstanding"
    r"|in progress|must|should|will|would|could|flaky|stopped)\b|n't\b|'ll\b"
)
_NO_SIGN = LazyRegex(r"[❌✗✘❎☐⬜🔲⏳⌛🚧⚠🔴🟡🟠🛑⛔]")
_GOES_ON = LazyRegex(
    r"\b(?:next|continu\w+|moving on|then i|working on|starting|can (?:now )?start)\b"
)
_AT_WORK = LazyRegex(r"\b(?:in progress|underway|wip|half|started|partially|working on)\b")

_QUOTED = LazyRegex(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|(?<!\w)\'[^\'\n]{1,400}\'(?!\w)'
)
_DRESS = LazyRegex(r"\*+|(?<!\w)_+|_+(?!\w)|[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]+")
_ASIDE = LazyRegex(r"\s*\(([^()\n]{0,80})\)")
_NARROW = LazyRegex(
    r"\b(?:only|except|not|un\w+|part|partial\w*|to-?do|so far|minus|without|pending|apart|aside"
    r"|but)\b"
)
_REQUEST = LazyRegex(
    r"\bplease (?:confirm|clarify|advise|decide|choose|let me|tell me|provide|specify|answer|send"
    r"|share)|\bawaiting\b|\bwaiting (?:for|on) (?:your|an?|the)|\b(?:let me know|tell me) (?!if)"
    r"|\b(?:i|we) need (?:your|you to|to know|the|an?|access|credentials)|\byour decision\b"
)


def has_promise(text: str) -> bool:
    """The completion promise is the last line outside fences and status blocks."""
    for line in reversed(list(own_lines(clean(text)))):
        if line.strip():
            return not line.startswith(("    ", "\t")) and line.strip(" \t*_") == PROMISE
    return False


def question_to_person(text: str) -> str | None:
    """What the last paragraph asks of a person; offers to go on ask nothing."""
    said = [sentence.text.rstrip("*_ ") for sentence in last_paragraph(text)]
    asked = []
    for sentence in said:
        words = _QUOTED.sub(EXHIBIT, sentence.lower())
        if words.endswith("?") or _REQUEST.search(words):
            asked.append(sentence)
    waits = bool(asked) and said[-1] == asked[-1]  # what follows a question answers it
    return one_line(" ".join(asked), _SHOWN) if waits else None


def _stated(text: str, ranks: tuple[str, ...]) -> str | None:
    """The first sentence of the last paragraph that makes such a statement and keeps it."""
    said = last_paragraph(text)
    plain = [_plain(sentence.text) for sentence in said]
    for index, words in enumerate(plain):
        if words and said[index].may_claim and not _known(words).isdisjoint(ranks):
            later = plain[index + 1 :]
            if not any(_takes_back(words, after, whole="whole" in ranks) for after in later):
                return one_line(said[index].text, _SHOWN)
    return None


# The sentence that states …
says_done = partial(_stated, ranks=("whole", "tests"))  # … that the whole work is finished
claims_completion = partial(_stated, ranks=("piece", "none"))  # … that the piece at hand is
says_already_done = partial(_stated, ranks=("none",))  # … that nothing had to be done


def _known(words: str) -> set[str]:
    """The ranks of the forms a sentence is made of; none where there is more in it."""
    if len(words) > _MAX_SENTENCE or not _STEM.search(words):
        return set()
    lead = _LEAD.match(words)
    place = lead.end() if lead else 0
    found: set[str] = set()
    while place < len(words):
        ends = {rank: form.end() for rank in _FORMS if (form := _FORMS[rank].match(words, place))}
        joint = _JOINT.match(words, max(ends.values())) if ends else None
        if joint is None:
            return set()
        found |= {rank for rank, end in ends.items() if end == joint.start()}
        place = max(joint.end(), place + 1)
    counts = _OF.search(words)
    return set() if counts and counts[1] != counts[2] else found


def _takes_back(claim: str, later: str | None, *, whole: bool) -> bool:
    """Whether a later sentence says that it is not quite so; other stories are another matter."""
    if later is None:
        return True  # a question, or a sign that says no
    if whole and _GOES_ON.search(later):
        return True
    if not _LACK.search(_DENIED.sub("", later)) or _known(later):
        return False
    others = set(STORY.findall(later)) - set(STORY.findall(claim))
    return whole or _AT_WORK.search(later) is not None or not others


def _plain(sentence: str) -> str | None:
    """The sentence without its dress; None for questions and for signs that say no."""
    if sentence.endswith("?") or _NO_SIGN.search(sentence):
        return None
    text = _DRESS.sub("", _QUOTED.sub(EXHIBIT, sentence.replace("’", "'"))).lower()
    if any(_NARROW.search(aside[1]) for aside in _ASIDE.finditer(text)):
        return EXHIBIT
    return " ".join(_ASIDE.sub("", text).split()).strip(" :-–—")
