"""The grammars of completion: who or what is said to be finished, and in which words.

Each pattern is tried at the beginning of a clause of a plain sentence (see `clauses`) and covers
subject and predicate; what may follow is not its business.  The vocabulary is small on purpose:
an unknown subject is a part of the work, and an unknown predicate says nothing.
"""

from __future__ import annotations

from ralphloop.core.patterns import Pattern

_END = r"(?![\w'/-])"


def _one_of(*alternatives: str) -> Pattern:
    return Pattern(rf"(?:{'|'.join(alternatives)}){_END}")


# --- predicates -------------------------------------------------------------------------------

_OVER = r"(?:feature[- ]complete|completed?|done|finished|implemented|wrapped up)"
_DONE = rf"(?:{_OVER}|delivered|built|through|closed|fulfilled)"
_BE = (
    r"(?: (?:is|are|was|were|(?:has|have)(?: (?:now|all|both|finally|also|already))*(?: been)?"
    r"|stands? at)|'s|'re|:| [-–—])?(?: marked(?: as)?)?"
)
_FULLY = (
    r"(?: (?:now|all|both|fully|finally|officially|entirely|completely|successfully|also|already"
    r"|indeed|hereby|therefore|thus|then|each|totally|100 ?%))*"
)
_IS_DONE = f"{_BE}{_FULLY} {_DONE}"
_IS_OVER = f"{_BE}{_FULLY} {_OVER}"
_COMPLETED = (
    r"(?:(?:i|we)(?:'ve| have)? )?(?:(?:now|just|successfully|finally|also|fully) )*"
    r"(?:completed|finished|implemented|delivered|built|done|checked off)"
    r"(?: (?:implementing|building|work on))?"
)
_COMPLETES = r"(?:(?:this|that|which) )?(?:completes|finishes|concludes|wraps up)"

# --- the whole --------------------------------------------------------------------------------

_NUMBER = r"(?:\d[\d,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)"
_ITEMS = (
    r"(?:(?:user )?stor(?:y|ies)|(?:sub)?tasks?|requirements?|features?|(?:work )?items?|work"
    r"|tickets?|to-?dos?|goals?|objectives?|deliverables?|epics?|milestones?|phases?"
    r"|implementation(?: work)?)"
)
_PLACES = (
    r"(?:(?: (?:described|listed|outlined|specified|defined))?"
    r" (?:in|from|of|on|across|within|for) (?:(?:the|this|our|your) )?"
    r"(?:(?:entire|whole|full|current) )?(?:prd(?:\.json)?|tasks\.yaml|project|backlog|list|plan"
    r"|brief|(?:story|task|to-?do) list|roadmap|spec|specification|repo|repository|codebase|suite"
    r"|test suite|app|application|product%s)(?![\w'/-]))?"
)
_EVERYWHERE = _PLACES % ""
# "all stories in `prd.json`"; but tests in `some/folder` are a part
_LISTED = _PLACES % r"|…|[\w-]{1,30}\.(?:md|json|ya?ml)"
_ALL_ITEMS = (
    r"(?:all|every|each)(?: of)?(?: the| our| your| my)?"
    rf"(?: (?:{_NUMBER}|remaining|open|planned|required|requested|outstanding|listed|specified"
    r"|defined|pending|prd|project|product|project's|original|functional|of))*"
    rf" {_ITEMS}{_LISTED}"
)
_EVERYTHING = (
    rf"everything(?:{_LISTED}|(?: that)?(?: was| is| has been)? (?:asked for|requested|planned"
    r"|required|specified|in scope)| (?:the prd asks|you asked) for)"
)
_PROJECT = (
    r"(?:(?:the|this|our|your|my) )?(?:(?:entire|whole|full|overall|project's|prd's) )*"
    r"(?:(?:project|prd|product|app|application|backlog|roadmap|implementation|development)"
    r"(?: status| can(?: now)? be considered)?"
    r"|(?<=entire )(?:work|job|scope|task)|(?<=whole )(?:work|job|scope|task)"
    r"|overall(?: status| progress)?)"
)
_THE_PROJECT = (
    r"(?:the|this) (?:(?:entire|whole|full) )?(?:project|prd|backlog|app|application|product)"
)
_THE_WORK = r"(?:the|this|our|my|all the|all of the) work(?: here)?"
_THERE_IS = r"(?:(?:there(?:'s| is| are| was)|(?:i|we) have) )?"
_OPEN = r"(?:more|further|other|open|pending|remaining|outstanding|unfinished|incomplete)"

WHOLE = _one_of(
    rf"{_PROJECT}{_EVERYWHERE}{_IS_OVER}",
    r"(?:the|our) (?:(?:backlog|story list) is(?: now)? empty"
    r"|(?:task|to-?do) list is(?: now)? empty(?=[.!]?$))",
    rf"(?:i|we) consider {_PROJECT}(?: to be)? {_OVER}",
    rf"{_ALL_ITEMS}{_BE}{_FULLY}"
    rf" (?:{_DONE}|met|satisfied|passes: true|pass|passes|passed|passing|verified"
    r"|green|checked off|ticked off|reached|achieved)",
    rf"(?P<part>\d{{1,6}}) ?(?:/|of|out of) ?(?:the )?(?P<total>\d{{1,6}}) (?:{_ITEMS}|tests)"
    rf"{_EVERYWHERE}{_BE}{_FULLY} (?:{_DONE}|pass|passed|passing)",
    rf"{_EVERYTHING}{_IS_OVER}",
    rf"{_THE_WORK}(?:'s| is| has been){_FULLY} {_OVER}",
    r"all (?:done|completed?|finished)",
    r"(?:we|i)(?:'re|'m| are| am)(?: now| all)? (?:done|finished)(?: here)?",
    rf"{_THERE_IS}nothing(?: (?:is|was|now|else|more|further|left|remaining|remains))*"
    r"(?: for (?:me|us|you))? to (?:do|be done)",
    rf"{_THERE_IS}nothing(?: (?:else|more|further))? (?:is )?(?:pending|open|outstanding)",
    rf"{_THERE_IS}nothing(?: (?:is|was|now))?(?: (?:else|more|further|left|remaining|remains))+"
    r"(?: to (?:implement|complete|build|finish|work on|add|fix|change|pick up))?",
    rf"{_THERE_IS}(?:no|zero|0)(?: {_OPEN})* {_ITEMS}{_EVERYWHERE}{_BE}"
    r" (?:left|remain|remains|remaining|open|pending|outstanding|needed|required|necessary"
    r"|to (?:do|be done|implement|work on|pick up))(?: to (?:do|be done|implement|work on))?",
    rf"{_THERE_IS}(?:no|zero|0) {_OPEN} {_ITEMS}",
    r"(?:(?:progress|completion|overall(?: progress)?|we(?:'re| are)|now)(?: is| stands at|:)?"
    r"(?: now| at)? )?100 ?% (?:completed?|done|finished|implemented)",
    rf"100 ?% of (?:the )?{_ITEMS}{_IS_DONE}",
    rf"(?:{_COMPLETED}|{_COMPLETES}) (?:everything|{_ALL_ITEMS}|{_THE_PROJECT}|{_THE_WORK})"
    rf"{_EVERYWHERE}",
)
TESTS = _one_of(
    r"(?:all(?: of)?(?: the| our)?(?: \d[\d,]*)?(?: project| automated)? tests"
    r"|every(?: single)? test|(?:the |our )?(?:entire|whole|full|complete) (?:test )?suite)"
    r"(?:(?:, and|,| and| &) (?:the |all )?(?:[a-z-]{2,12} )?"
    r"(?:lint(?:ing|ers?)?|checks?|checking|type-?checks?|build|formatting|benchmarks)){0,4}"
    rf"{_EVERYWHERE}{_BE}(?: (?:now|still|again|also|finally|cleanly|all))*"
    r" (?:pass|passes|passed|passing|green|succeed|succeeded)",
)
WITHIN_ALL = Pattern(_EVERYWHERE)

# --- the piece at hand ------------------------------------------------------------------------

_ID = (
    r"(?:(?!(?:step|phase|part|milestone|stage|utf|sha|iso|rfc|python|section|version|page)\b)"
    r"[a-z][a-z0-9]{0,9}-\d{1,6}(?:\.\d{1,4})?|(?:story|task|ticket|issue) #?\d{1,6}(?:\.\d{1,4})?)"
)
_THIS = (
    r"(?:(?:the )?implementation (?:of|for) )?(?:(?:the|this|that|my|our|current|requested) )*"
    rf"(?:(?:user )?(?:story|task|ticket|issue) {_ID}|{_ID}"
    r"|(?:user )?story|task|ticket|feature|work|changes?|job|request|fix|assignment|subtask)"
)
_CRITERIA = (
    r"(?:(?:all|every|each)(?: of)?(?: the| its)?(?: \d+| listed| required)*(?: acceptance)?"
    r" criteri(?:a|on)|(?:the|its) acceptance criteria)"
)
_ASKED_FOR = r"(?:what|everything) (?:it|(?:the|this) (?:story|task)) asks for"

PIECE = _one_of(
    rf"{_THIS}{_BE}{_FULLY} (?:{_OVER}|in place)",
    rf"(?:the|all|my) work (?:for|on) {_THIS}{_BE}{_FULLY} {_OVER}|(?:done|finished) with {_THIS}",
    rf"{_ID}(?::| [-–—]) [^,;.:]{{1,80}}? (?:is|are|has been){_FULLY} {_DONE}",
    rf"{_ID}(?: now)? passe[sd]",
    rf"(?:it|this|that)(?: is|'s| has been){_FULLY} (?:completed?|done|finished|fully implemented)",
    r"(?:i|we)(?:'m|'re| am| are)(?: now)? (?:done|finished)",
    rf"{_CRITERIA}(?: (?:of|for) {_THIS})?{_BE}{_FULLY}"
    r" (?:met|satisfied|fulfilled|covered|implemented|done|pass|passing)",
    rf"(?:{_EVERYTHING}|{_ASKED_FOR}){_BE}{_FULLY} (?:{_OVER}|in place)",
    r"all(?: of)?(?: the)? (?:requested|required|necessary) changes"
    rf"{_BE}{_FULLY} (?:made|done|completed?|implemented|in place)",
    rf"(?:{_COMPLETED}|{_COMPLETES}) {_THIS}",
    rf"(?:(?:i|we)(?:'ve| have)? )?marked (?:{_THIS}|it) (?:as )?"
    r"(?:completed?|done|passed|passing|finished)",
)
_OF_PIECE = (
    rf" (?:for|of|in|with|on) (?:{_THIS}|(?:this|the|my) (?:iteration|loop|run|turn))"
    rf"{_END}(?: only)?| here"
)
WITHIN_PIECE = Pattern(rf"(?:{_OF_PIECE})?")

LONE = _one_of(r"all set|done|fixed|finished|completed?|implemented|delivered")
AFTER_LONE = Pattern(
    r"[.!]*$|,|\s*[;—–]|\s-\s|(?: and| with) (?:all|every|everything|tests?\b|checks?\b"
    r"|the (?:tests?|checks?|suite|build)|(?:fully )?(?:tested|verified|committed|documented"
    r"|pushed|checked|green|working)(?=$|[.,;!]| and))"
)
SHOUT = Pattern(r"completed?[.!]*")

# --- no work ----------------------------------------------------------------------------------

_NO_CHANGES = (
    r"no(?: (?:code|source|further|additional|more|functional|other))*"
    r" (?:changes?|work|action|modifications?|edits?)"
)
_ALREADY = (
    r"(?: (?:is|are|was|were|has|have|had)|'s|'re)? already(?: been)?(?: (?:fully|completely|all"
    r"|correctly))* (?:implemented|done|completed?|finished|in place|there|present|met|satisfied"
    r"|fulfilled|exists?|existed|fixed|passing|covered|supported|does (?:this|that|so))"
)
NO_WORK = _one_of(
    rf"(?:there (?:is|was|are|were) )?{_NO_CHANGES}(?: (?:is|are|was|were))?"
    r"(?: (?:needed|necessary|required)| to (?:make|do))",
    rf"(?:it|this|that|{_THIS}) (?:needs|needed|requires|required) {_NO_CHANGES}",
    r"no further (?:action|changes?)",
    rf"{_THERE_IS}nothing to (?:do|change|implement|fix)",
    r"nothing (?:needs|needed|has|had) to (?:be )?(?:changed?|done|implemented|fixed|do)",
    rf"(?:{_THIS}|{_PROJECT}|{_EVERYTHING}|{_ALL_ITEMS}|{_CRITERIA}|{_ASKED_FOR}){_ALREADY}",
    r"already (?:fully |completely )?(?:implemented|done|complete|in place|satisfied|there)",
)
# the subject may be just what the story asks for, or a part of it: believed only if nothing
# else was worked on
SOMETHING_WAS_THERE = _one_of(
    rf"(?:it|this|that|(?:the|a|an) [^,;:]{{1,80}}?){_ALREADY}",
    r"(?:it|this|that|the [^,;:]{1,80}?) already (?:supports|handles|provides|implements|covers)"
    r"(?:(?! but\b| except\b| only\b| not\b)[^,;:]){1,100}?(?=[.!]?$|[,;:])",
)
OTHER_WORK = Pattern(
    r"(?:(?:^|[;,.—–] )(?:and |then )*(?:(?:i|we)(?:'ve| have)? )?(?:only |just |also |instead )?"
    r"(?!need|verif|check|confirm|review|inspect|look|test|exist|bas|implemented|completed|finished"
    r"|reported|ensured|validated|examined|compared|us)[a-z]{2,12}ed\b)"
    r"|\b(?:continu|moving on|moved on|next|instead)\w*"
)
WITHIN_PAST = Pattern(
    rf"(?:{_OF_PIECE}| (?:in|by|from|during|with) (?:an?|the|some|our) "
    r"(?:earlier|previous|prior|existing|last|current) \w{1,20})?"
)

# one of these stands in every sentence that the grammars above accept
HINT = Pattern(
    r"complet|done|finish|implement|wrapped|deliver|built|through|closed|fulfil|\bmet\b|satisf"
    r"|pass|verified|green|nothing|\bno\b|zero|\b0\b|succe|already|in place|made|fixed|all set"
    r"|conclude|wraps up|empty|checked|ticked|reached|achieved"
)
