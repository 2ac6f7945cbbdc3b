"""The text of notes: what two have in common, what one is about, how far it may travel.  Pure.

Two stories can repeat the same bad advice (a poisoned README is read by every one of them), so
being said twice is not enough.  What speaks of switching checks off, of the supervisor's own files,
of secrets, of the network or of places outside the project is held back until a person approves it;
too much rather than too little.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ralphloop.core.proof import is_test_path
from ralphloop.learning.model import MAX_TEXT
from ralphloop.text.plain import LazyRegex, clean, one_line

SAME = 0.75  # of all words, so many in common make two notes one

_WORD = LazyRegex(r"[^\W_][\w./@+'-]*|[;:,.!?]")
_PART = LazyRegex(r"[^\W_]{2,}")
_SAFE_PATH = LazyRegex(r"[\w@+-][\w.@+-]*(?:/[\w@+-.][\w.@+-]*)*")
_MAX_WORDS = 60
_STOP = frozenset(
    "a about after all also an and any are as at be been but by can could did do does each every"
    " for from had has have if in into is it its just may must need of on once one only or our out"
    " should since so than that the their them then there these they this to too use uses used was"
    " we were when where which while will with would you your always".split()
)
_NEGATIONS = frozenset(
    "no not never without avoid cannot dont don't doesn't isn't aren't neither nor nothing".split()
)
_SCOPE = 3  # telling words that a negation reaches, within its part of the sentence
NOT = "~"  # before a word that is denied
_OPPOSITES = [
    frozenset(pair.split("/"))
    for pair in "utc/local before/after first/last sync/async ascending/descending tab/space"
    " required/optional upper/lower absolute/relative sorted/unsorted above/below hand/generated"
    " manually/automatically enabled/disabled cent/euro cent/dollar newest/oldest".split()
]
# What nearly every path or note has says nothing about what it is about.
_COMMON = frozenset(
    "src lib app py ts js tsx jsx txt md json toml yaml yml test main index init file line change"
    " new add module code".split()
)

# What a path or a sentence is about, first match wins; the names become names of skills.
_CATEGORIES: dict[str, str] = {
    "database": "database databases db sql migration migrations schema schemas models orm sqlite",
    "api": "api apis endpoint endpoints route routes router controller controllers rest graphql",
    "swiftui": "swiftui",
    "watchos": "watchos watch",
    "frontend": "ui frontend component components view views page pages css html react vue svelte"
    " tsx jsx template templates",
    "cli": "cli command commands cmd terminal argv",
    "auth": "auth login password session sessions oauth permission permissions",
    "testing": "test tests testing pytest jest vitest fixture fixtures conftest coverage",
    "build": "build makefile docker dockerfile ci workflow workflows webpack vite package lockfile",
    "config": "config configuration settings toml yaml yml ini env",
    "docs": "docs doc documentation readme changelog md",
}
_LANGUAGES = dict(
    pair.split(":")
    for pair in "py:python ts:typescript js:javascript rs:rust go:go java:java kt:kotlin"
    " swift:swift rb:ruby php:php cs:csharp c:c h:c cpp:cpp ex:elixir sh:shell".split()
)
_ABOUT = {word: name for name, words in _CATEGORIES.items() for word in words.split()}
CATEGORIES = frozenset({*_CATEGORIES, *_LANGUAGES.values(), "general"})


@lru_cache(maxsize=10_000)
def words_of(text: str) -> frozenset[str]:
    """The telling words of a text, paths whole, in their plain form, denied ones marked."""
    kept: dict[str, None] = {}
    denied = 0
    for word in _WORD.findall(text[:2000].lower())[: 3 * _MAX_WORDS]:
        if word in _NEGATIONS or not word[0].isalnum():
            denied = _SCOPE if word in _NEGATIONS else 0
        elif word not in _STOP:
            plain = _stem(word.rstrip(".-+/'"))
            if denied and not _is_path(plain):
                plain = f"{NOT}{plain}"
            kept[plain] = None
            denied = max(0, denied - 1)
    return frozenset(list(kept)[:_MAX_WORDS])


def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word.removesuffix(ending)
    is_plural = word.endswith("s") and not word.endswith("ss") and len(word) > 3
    return word[:-1] if is_plural else word


def _is_path(word: str) -> bool:
    return "/" in word or "." in word


def paths_in(text: str) -> list[str]:
    found = (word.strip(".'") for word in re.findall(r"[\w@+./-]+", text[:2000]))
    return list(dict.fromkeys(word for word in found if "." in word or "/" in word))


def is_same(a: frozenset[str], b: frozenset[str]) -> bool:
    """The same fact, for certain: most words are, or its files and most of its other words."""
    if deny(a, b):
        return False
    mine, theirs = (frozenset(filter(_is_path, words)) for words in (a, b))
    common = len(a & b)
    if common and common >= SAME * (len(a) + len(b) - common):
        return not (mine and theirs) or mine <= theirs or theirs <= mine
    rest_a = a - mine
    rest_b = b - theirs
    shared = len(rest_a & rest_b)
    return bool(mine) and mine == theirs and shared >= max(3, 0.6 * min(len(rest_a), len(rest_b)))


def are_about_the_same(a: frozenset[str], b: frozenset[str]) -> bool:
    """Half of the words of the shorter one stand in the other too, denied or not."""
    mine = {word.removeprefix(NOT) for word in a if not _is_path(word)}
    theirs = {word.removeprefix(NOT) for word in b if not _is_path(word)}
    common = len(mine & theirs)
    return common >= 2 and 2 * common >= min(len(mine), len(theirs))


def deny(a: frozenset[str], b: frozenset[str]) -> bool:
    """One says what the other denies, or says the opposite of it about the same thing."""
    for one, other in ((a, b), (b, a)):
        if any(word[1:] in other for word in one if word[0] == NOT):
            return True
    rest = {word for word in a & b if not _is_path(word)}
    return bool(rest) and any(
        len(pair & a) == len(pair & b) == 1 and pair <= a | b for pair in _OPPOSITES
    )


def match_words(text: str) -> frozenset[str]:
    """Words and parts of words (of paths and names), for finding what belongs together."""
    whole = {word.removeprefix(NOT) for word in words_of(text)}
    parts = {_stem(part) for word in whole for part in _PART.findall(word)}
    return frozenset(whole | parts) - _STOP - _COMMON


def category_of(paths: Iterable[str], text: str = "") -> str:
    """What the paths are about, else what the text is about, else the language of the paths."""
    known = [path.lower() for path in paths]
    areas = list[str]()
    for path in known:
        found = [_ABOUT[part] for part in _PART.findall(path) if part in _ABOUT]
        others = [area for area in found if area != "testing"]
        if others:
            areas.append(others[0])
        elif is_test_path(path):
            areas.append("testing")
    return (
        _commonest(areas)
        or _commonest(_ABOUT.get(word, "") for word in match_words(text))
        or _commonest(_LANGUAGES.get(path.rpartition(".")[2], "") for path in known)
        or "general"
    )


def _commonest(names: Iterable[str]) -> str:
    counts = Counter(name for name in names if name)
    return min(counts, key=lambda name: (-counts[name], name)) if counts else ""


def is_plain_path(path: str) -> bool:
    """True for a relative path of ordinary characters: it can stand in a sentence as it is."""
    return len(path) <= 150 and bool(_SAFE_PATH.fullmatch(path)) and ".." not in path.split("/")


def remedy(files: Sequence[str], commands: Sequence[str] = ()) -> str:
    """What made a failure go away; empty where that is not known."""
    ways = [f"a change in {', '.join(f'`{path}`' for path in files)}"] if files else []
    ways += [f"`{command}`" for command in commands]
    return f"went away with {' and '.join(ways)}" if ways else ""


def _near(first: str, second: str) -> str:
    """A word that begins like one of the first, then soon one like those of the second."""
    one, other = (words.replace(" ", "|").replace("_", " ") for words in (first, second))
    return rf"\b(?:{one})\w*\b.{{0,60}}\b(?:{other})"


_GUARDS = (
    r"check test lint verif hook assert review guard sandbox permission safety ci\b prüf vérif"
)
_SYSTEM = "etc|home|root|usr|var|tmp|proc|sys|dev|opt|mnt|bin|sbin|lib|boot|run|srv|private"
_INSTALLERS = "pip3?|pipx|uv|npm|npx|yarn|pnpm|bun|cargo|gem|brew|apt|apt-get|dnf|go"
_SENDERS = "curl|wget|ncat|netcat|nc|scp|sftp|rsync|ssh|telnet|webhook|pastebin|ngrok"

SECRETS = "secrets or people"
_RULES: dict[str, tuple[str, ...]] = {
    "instructions": (
        _near(
            "ignore disregard forget overrid overrul supersed",
            "instruction rule prompt guideline previous prior above earlier polic",
        ),
        r"system prompt|you are now|from now on|new instruction|jailbreak|developer mode",
        r"</?\s*(?:system|assistant|user|human|instructions?)\b",
    ),
    "switching checks off": (
        _near("disabl skip bypass delet remov weaken ignor silenc suppress loosen relax", _GUARDS),
        _near("deaktivier überspring abschalt désactiv desactiv desabilit disattiv omit", _GUARDS),
        _near("empt stub turn_off turning_off switch_off switching_off comment_out", _GUARDS),
        _near("without_running commenting_out avoid_running stop_running", _GUARDS),
        _near("not_run not_need never_run no_longer don't_run don't_need need_no", _GUARDS),
        _near(_GUARDS, r"disabled skipped bypassed off\b removed deleted ignored commented"),
        _near(_GUARDS, "unnecessary optional not_needed not_required not_necessary"),
        r"--no-verify|skip-permissions|--dangerously|--force\b|\bxfail|\bnoqa\b|type: ?ignore",
        r"\.skip\b|continue-on-error|\|\|\s*true|\bassert true\b|\bexit 0\b",
    ),
    "the supervisor's own business": (
        r"ralph_status|\.ralph\b|ralph\.toml|exit_signal|promise>|\bpasses\W{1,3}true|\bsupervisor",
        r"prd\.json|tasks\.yaml|progress\.txt|claude\.md|agents\.md|\.claude\b|settings[\w.]*\.json",
    ),
    "the network": (
        rf"[a-z]{{2,10}}://|\bwww\.|exfiltrat|\b(?:{_SENDERS})\b",
        _near(
            "upload send forward transmit leak",
            "server url host e-?mail secret key token credential environ content",
        ),
    ),
    "passing checks without the work": (
        r"\breturn true\b|\bhard-?cod|\bwith itself\b|expected (?:output|value)s? (?:in)?to",
        r"(?:keep|stay|turn|make)s? (?:it |them |everything )?(?:all )?green|nothing turns red",
        r"\b(?:is|are) happy\b|\bbe done\b|\bright away\b|\bat once\b|looks? at it later",
        r"(?:catch|swallow)\w* (?:every|all|any) (?:exception|error)|report\w* .{0,40}\bfinished\b",
        r"\bonly one (?:case|weekday|value|input)\b|\bcomplete at\b",
    ),
    SECRETS: (
        r"pass-?(?:phrase|code)|\w*passw(?:or)?d\w*\s*[=:]|\bpin (?:is|code|number)",
        r"\b(?:login|account)s? (?:is|are|name)|\biban\b|\b[a-z]{2}\d{2}(?: ?\d{4}){3,}",
        r"[\w+-]@[\w-]{1,60}\.\w{2,}|\bphone (?:is|number)|\+\d[\d /-]{7,}",
        r"\b(?:api|access|private|ssh|secret|signing|encryption)[ _-]?keys?\b|\bsecrets?\b",
        r"\bpassw(?:ord|d)s?\b|credential|bearer|(?:auth|access) token|\.env\b|id_rsa|\[redacted\]",
        r"\bprintenv\b|os\.environ|process\.env",
    ),
    "places outside the project": (
        rf"(?:^|[\s`'\"(=:,])/(?:{_SYSTEM})\b|/(?:users|volumes)/\w+/\w",
        r"~/|\.\./|\b[a-z]:\\|\\\\|\$\{?home\b|%userprofile|\.git/|crontab|authorized_keys",
        r"\.(?:ssh|bashrc|zshrc|profile|gitconfig|npmrc|netrc|pypirc)\b",
    ),
    "commands that change the machine": (
        r"\brm\s+-|\b(?:sudo|chmod|chown|eval|exec|shutdown|mkfs)\b|\bdd if=|\|\s*\w*sh\b|base64",
        r"git\s+(?:push|reset|stash|clean|checkout|config|rebase|remote|filter)|--hard\b|kill -9",
        rf"\b(?:{_INSTALLERS})\s+(?:install|add|get|i|dlx|exec)\b|\$\(|&&|;\s*\w+\s+-",
    ),
}
# Letters of two alphabets in one word are there to be misread.
_RULES["mixed alphabets"] = (r"[a-z][\u0370-\u052f]|[\u0370-\u052f][a-z]",)
_SUSPICIONS = {reason: LazyRegex("|".join(rules)) for reason, rules in _RULES.items()}
_LEADING = LazyRegex(r"^[\s#>*+|=~-]+|^\d{1,3}[.)]\s+")
_RUNS = LazyRegex(r"`{2,}")
_IMPORT = LazyRegex(r"@(?=[\w~./\\])\S*")
_ANGLES = str.maketrans({"<": "‹", ">": "›"})


def suspicion(text: str) -> str:
    """Why this text must not travel by itself; empty where nothing speaks against it."""
    plain = unicodedata.normalize("NFKC", clean(text[: 4 * MAX_TEXT]))
    flat = " ".join(plain.replace("’", "'").lower().split())
    return next((reason for reason, pattern in _SUSPICIONS.items() if pattern.search(flat)), "")


def plain_line(text: str, limit: int = MAX_TEXT) -> str:
    """The text as one harmless line of Markdown."""
    line = _RUNS.sub("`", _LEADING.sub("", one_line(text, limit))).replace("!`", "`")
    line = line.translate(_ANGLES)
    if line.count("`") % 2:
        line = line.replace("`", "'")
    pieces = line.split("`")
    # Imports work outside of code only, so code is what they become.
    pieces[::2] = [_IMPORT.sub(lambda found: f"`{found[0]}`", piece) for piece in pieces[::2]]
    return "`".join(pieces).replace("!`", "`")
