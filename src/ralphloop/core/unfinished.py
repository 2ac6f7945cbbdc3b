"""Words that say there is still something to do.

They take back a statement of completion that stands shortly before them: "Implementation complete.
However, two tests still fail."  A lack that is denied ("no tests fail", "nothing is missing") is
none.

Three ranges, from near to far:

* `takes_back`: the rest of the sentence and the next one; weak words count there;
* `is_unfinished`: anywhere after the statement, so it must be said plainly;
* `goes_on`: the agent announces the next piece of work, which denies the whole, not this story.

A lack in another story (`is_elsewhere`) takes nothing back from this one.
"""

from __future__ import annotations

from ralphloop.core.patterns import Pattern

_COUNT = r"(?:one|two|three|four|five|six|a few|few|some|several|many|most|[1-9]\d*|another)"
_WORK = (
    r"(?:(?:user )?stor(?:y|ies)|tasks?|criteri(?:on|a)|requirements?|features?|items?|work|parts?"
    r"|pieces?|steps?|tests?|checks?|issues?|bugs?|todos?|things?|edge cases?|files?|docs"
    r"|documentation)"
)
_DONE = (
    r"(?:done|completed?|finished|implemented|passing|pass|ready|working|tested|verified|covered"
    r"|there|through|met|merged|wired|written|fixed|green)"
)
_NOT_DONE_AFTER = rf"(?!(?: (?!not\b)\w+){{0,4}} {_DONE}\b)"  # "the remaining tasks are finished"
_CHECKS = (
    rf"(?:{_COUNT}(?: of the)?(?: \w+){{0,2}}|tests?|checks?|suite|build|ci|pipeline|lint|linter"
    r"|main|mypy|ruff|typecheck)"
)
_MODIFIED = r"(?:(?:still|now|currently|also|only|just|being) ){0,2}"


def _any_of(*alternatives: str) -> Pattern:
    return Pattern("|".join(alternatives))


_LACK = _any_of(
    r"\bstill (?:needs?|have to|has to|must|to\b|fail\w*|missing|open|broken|red|pending|lacks?"
    r"|outstanding|blocked|requires?|incomplete|unfinished|not|isn't|doesn't|in progress|being"
    r"|waiting|left|remain\w*|todo|working on|crash\w*|a few|some|one|two|three|\d)",
    rf"\b(?:is|are|be|remains?|'s|'re) {_MODIFIED}(?:missing|pending|outstanding|incomplete"
    r"|unfinished|untested|unresolved|unimplemented|in progress|underway|commented out|stubbed"
    r"|mocked out|to do|todo|failing)\b",
    rf"\b(?:is|are) {_MODIFIED}left\b(?! (?:where|of|over|untouched|alone|as|in|at|out|unchanged))",
    rf"\b(?:{_WORK}|(?:\w{{1,10}}-)?\d+|questions?|points?) (?:is|are|remains?) {_MODIFIED}"
    r"(?:open|blocked)\b",
    rf"\b(?:pending|outstanding|unfinished|remaining|incomplete|open) {_WORK}\b{_NOT_DONE_AFTER}",
    r"^(?:missing|remaining|remains|pending|open|to ?do|left|outstanding|still open|known issues?"
    r"|caveats?|limitations?)\s*[:—–-]",
    r"\bremains?\b(?! (?:the same|unchanged|stable|in place|green|compatible|as ))",
    rf"(?:\bnot|n't|\bcannot)\b(?: \w+){{0,3}} {_DONE}\b",
    r"\bnot yet\b|\byet to\b|\bto go\b|(?:\bnot|n't)\b(?: \w+){1,3} yet\b",
    r"\b(?:did not|didn't) (?:get to|reach|manage|have time)\b"
    r"|(?:\bnot|n't)(?: yet)? run (?:the|any|all)\b|\bstopped (?:before|at|short)\b",
    r"\b(?:pending|to follow|untested|outstanding|tbd)[.!]*$",
    r"\b(?:except|apart from|aside from|caveat|wip|todo)\b",
    rf"\b{_CHECKS} (?:is |are )?{_MODIFIED}(?:fails?|failing|failed|breaks?|red|broken"
    r"|(?<!\d )skipped)\b",
    r"\b(?:couldn't|could not|can't|cannot|wasn't able to|was not able to|unable to) (?:\w+ )?"
    r"(?:run|finish|complete|test|verify|implement|fix|get|make|install|reach|build)\b",
    rf"\bneeds? (?:to be|more|further|another|work|fixing|attention|manual|{_COUNT})\b",
    r"\b(?:i|we|still|then) (?:\w+ )?(?:need|have) to (?:\w+ )?"
    r"(?:add|fix|finish|write|implement|complete|do|wire|handle|cover|see|look)\b",
    r"\bcomes? (?:later|next)\b|\bwill (?:follow|come)\b|\bfollows? later\b",
)
_CONTRAST = Pattern(
    r"(?:however|but|unfortunately|that said|still|yet|except|nevertheless|only|one caveat|caveat"
    r"|though|although|on the other hand)\b"
)
_WEAK_LACK = Pattern(
    r"\b(?:no|not|never|fails?|failing|failed|missing|left|need|needs|must|skipped|lacks?|without"
    r"|broken|red|open|flaky|slow|later|untested|unclear|todo|remain\w*|pending|problem|issue"
    r"|still)\b|n't\b"
)
_UNFINISHED = _any_of(
    r"\b(?:i|we|it|this|that)(?:'m| am|'re| are|'s| is)(?:n't| not) (?:\w+ ){0,2}"
    r"(?:done|finished|there|through|complete|over)\b",
    r"\bnot (?:all|every|everything|each)\b",
    r"\b(?:project|prd|implementation|work|app|application|stor(?:y|ies)|tasks?|everything|tests?"
    r"|suite|feature|backlog|criteria|requirements)"
    rf"(?: (?:is|are|has|have|do|does)(?:n't| not)|'s not)(?: \w+){{0,2}} {_DONE}\b",
    rf"\b{_COUNT}(?: more| other| open| remaining)*(?: user)? {_WORK}(?: \w+){{0,2}}"
    r" (?:remain|remains|remaining|left|to go|open|pending|outstanding|unfinished)\b",
    rf"\b{_COUNT} (?:more )?(?:remain|remains|to go|left)\b|\bmore to (?:go|do|come)\b",
    rf"\b(?:remaining|outstanding|unfinished|pending) {_WORK}\b{_NOT_DONE_AFTER}",
    r"\bstill (?:needs?|have to|has to|must|fails?|failing|to do|to be done|missing|broken|red)\b",
    r"\btests? (?:still )?(?:fail|fails|failing)\b|\bneeds? (?:one more|another) (?:pass|round)\b",
    r"\b(?:far from|nowhere near|not even close to) (?:complete|done|finished)\b",
    r"\bmore work (?:is )?(?:needed|required|remains|to do)\b",
)
_GOES_ON = Pattern(
    r"(?:^|[;,—–] )(?:next|then|now|afterwards)[,:]? (?:i|we|up|on|comes?|to|for"
    r"|the (?!project|whole|entire|app|work|prd|backlog|implementation))\b"
    r"|\bcan (?:now |then )?(?:start|begin|move|continue|turn|tackle)\b"
    r"|\bnext (?:story|task|criterion|ticket|iteration|loop|round)\b|\b(?:is|are|up|comes) next\b"
    r"|^next\s*[:—–-]"
    r"|\b(?:continu(?:e|es|ed|ing)|carry(?:ing)? on|proceed(?:ing)?) (?:with|to|on|by)\b"
    r"|\bmov(?:e|ed|ing) on to\b|\b(?:i'll|i will|we'll|we will) (?:now |then |next )?"
    r"(?:start|pick|implement|work|continue|move|add|tackle|do|turn|begin|fix|write)\b"
    r"|\bcomes? (?:later|next)\b|\bstarting (?:on|with|work)\b|\bworking on\b"
)
_STORY_ID = Pattern(r"\b[a-z][a-z0-9]{0,9}-\d{1,6}\b")
_MANY = Pattern(r"\b(?:stories|backlog|rest of the (?:project|prd|plan))\b")
_AT_WORK = Pattern(
    r"\b(?:in progress|underway|wip|half|halfway|started|partially|working|except|apart|aside)\b"
)
_DENIED = Pattern(
    r"(?:\b(?:no|nothing|none|zero|0|without|neither|nor|never|any|fixed|fixes|resolved|removed"
    r"|repaired|solved|closed|addressed|previously|formerly|once|used to|longer)|^not?)"
    r"(?: \w+){0,3} ?$"
    r"|\b(?:completed|finished|implemented|delivered)(?: (?:all|each|every|of|the|our|my)){1,3} ?$"
    # what the product does with a lack is no lack of the product: "rows whose key is missing"
    r"|\b(?:which|whose|what|when|whenever|if|where|while|unless|until)\b[^,;]*$"
)
_RESOLVED = Pattern(
    r"(?: (?!not\b)\w+){0,4}? (?:fixed|resolved|repaired|solved|gone|green again|pass(?:es)? now"
    r"|now pass(?:es)?)\b"
)


def takes_back(words: str) -> bool:
    """True when these words, right after a statement of completion, say it is not quite so."""
    if opener := _CONTRAST.match(words):
        return _WEAK_LACK.search(words, opener.start()) is not None
    return _asserts(_LACK, words)


def is_unfinished(words: str) -> bool:
    """True when the sentence says plainly that the work is not at its end."""
    return _asserts(_UNFINISHED, words)


def goes_on(words: str) -> bool:
    """True when the sentence announces the next piece of work."""
    return _GOES_ON.search(words) is not None


def is_elsewhere(words: str, statement: str = "") -> bool:
    """True when the words speak of other stories that nobody has begun."""
    if _AT_WORK.search(words):
        return False
    others = _ids(words) - _ids(statement)
    return bool(others) or _MANY.search(words) is not None


def _ids(words: str) -> set[str]:
    return {found[0] for found in _STORY_ID.finditer(words)}


def _asserts(lack: Pattern, words: str) -> bool:
    return any(
        not _DENIED.search(words[max(0, found.start() - 80) : found.start()])
        and not _RESOLVED.match(words, found.end())
        for found in lack.finditer(words)
    )
