"""Comparing structured configuration by its values: each function yields what became weaker.

A file that cannot be parsed on either side yields nothing: the check itself will say so.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

_GROWING_IS_WEAKER = frozenset(
    {
        "ignore",
        "extend-ignore",
        "exclude",
        "extend-exclude",
        "per-file-ignores",
        "extend-per-file-ignores",
        "disable_error_code",
        "disable",
        "omit",
        "norecursedirs",
        "collect_ignore",
    }
)
_SHRINKING_IS_WEAKER = frozenset({"select", "extend-select", "enable_error_code", "testpaths"})
_TRUE_IS_STRICT = re.compile(r"^(?:strict\w*|disallow_\w+|check_untyped_defs|warn_\w+)$")
_TOOLS = ("ruff", "mypy", "pytest", "flake8", "pylint", "coverage", "pyright", "lint")


_ON = frozenset({"true"})
_Settings = dict[str, frozenset[str]]


def python_tools_in_toml(before: str, after: str) -> Iterator[str]:
    """Rules of ruff, mypy, pytest and others that ask less than before."""
    yield from _weaker(_settings(_toml(before)), _settings(_toml(after)))


def python_tools_in_ini(before: str, after: str) -> Iterator[str]:
    """The same for `setup.cfg`, `tox.ini`, `.flake8` and their like."""
    yield from _weaker(_settings(_ini(before)), _settings(_ini(after)))


def _weaker(old: _Settings, new: _Settings) -> Iterator[str]:
    for key, value in old.items():
        name = key.rpartition("/")[2]
        if name in _SHRINKING_IS_WEAKER and key in new and new[key] < value:
            yield f"{_short(key)} no longer has {', '.join(sorted(value - new[key]))}"
        if _TRUE_IS_STRICT.match(name) and value == _ON and new.get(key) != _ON:
            yield f"{_short(key)} is no longer switched on"
    for key, value in new.items():
        grown = value - old.get(key, frozenset())
        if _grows(key) and grown:
            yield f"{_short(key)} now leaves out {', '.join(sorted(grown))[:120]}"
        if key.endswith("/ignore_errors") and value == _ON and old.get(key) != _ON:
            yield f"{_short(key)} is switched on"


def _grows(key: str) -> bool:
    return any(part in _GROWING_IS_WEAKER for part in key.split("/"))


def _short(key: str) -> str:
    return key.removeprefix("tool/").replace("/", ".")


def _settings(document: Mapping[str, Any]) -> _Settings:
    """Every setting of a tool as `section/key` with the set of its words."""
    return {
        key: frozenset(words)
        for key, words in _leaves(document, "")
        if any(tool in key for tool in _TOOLS)
    }


def _toml(text: str) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    # ruff.toml has no [tool.ruff] around its settings
    is_project = not document.keys().isdisjoint(("tool", "project", "build-system"))
    return document if is_project else {"tool": {"ruff": document}}


def _ini(text: str) -> Mapping[str, Any]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return {
        section: {key: _words(value) for key, value in parser.items(section)}
        for section in parser.sections()
    }


def _words(value: str | None) -> list[str]:
    words = [word for word in re.split(r"[\s,]+", value or "") if word]
    return ["true"] if [word.lower() for word in words] in (["true"], ["yes"], ["on"]) else words


def _leaves(value: object, key: str) -> Iterator[tuple[str, list[str]]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}/{name}".lstrip("/"))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for item in value:
            yield from _leaves(item, f"{key}[{_label(item)}]")
    elif isinstance(value, list):
        yield key, [str(item) for item in value]
    elif isinstance(value, bool):
        yield key, [str(value).lower()]
    else:
        yield key, [str(value)]


def _label(item: object) -> str:
    """What tells one table of a list from another, such as mypy's overrides."""
    module = item.get("module", "") if isinstance(item, Mapping) else ""
    return str(module)


_THRESHOLD = re.compile(
    r"(fail[_-]under|cov-fail-under|branches|functions|lines|statements)[\"']?\s*[=:]\s*(\d+)"
)


def thresholds(before: str, after: str) -> Iterator[str]:
    """Coverage that need not be as high as before."""
    old = {name: int(number) for name, number in _THRESHOLD.findall(before)}
    new = {name: int(number) for name, number in _THRESHOLD.findall(after)}
    for name, number in old.items():
        if new.get(name, 0) < number:
            yield f"{name} went from {number} to {new.get(name, 'nothing')}"


_CHECK_SCRIPT = re.compile(
    r"^(?:pre|post)?(?:test|lint|check|typecheck|type-check|verify|ci|build)"
)
_TRIVIAL = re.compile(r"^\s*(?:true|:|exit 0|echo\b[^&|;]*|node -e ['\"]{2})?\s*$")
_LESS = re.compile(
    r"\|\|\s*(?:true|:|exit 0)|;\s*(?:true|exit 0)\s*$|--passWithNoTests|--deselect\b"
    r"|--testPathIgnorePatterns\b|--testNamePattern\b|--ignore(?=[= ])"
)
_LESS_IN_TESTS = re.compile(r"--exclude\b|--grep\b|(?:^|\s)-[tg](?=\s)")


def package_scripts(before: str, after: str) -> Iterator[str]:
    """Scripts of package.json that no longer check what they did."""
    old, new = _scripts(before), _scripts(after)
    if old is None or new is None:
        return
    for name, script in old.items():
        if not _CHECK_SCRIPT.match(name) or script == new.get(name):
            continue
        if name not in new:
            yield f"the script {name} was removed"
        elif _TRIVIAL.match(new[name]) and not _TRIVIAL.match(script):
            yield f"the script {name} does nothing now: {new[name][:80]!r}"
        elif fewer := _omissions(name, new[name]) - _omissions(name, script):
            yield f"the script {name} now has {', '.join(sorted(fewer))}"


def _omissions(name: str, script: str) -> set[str]:
    found = _LESS.findall(script)
    if name.startswith("test"):
        found += _LESS_IN_TESTS.findall(script)
    return {word.strip() for word in found}


def _scripts(text: str) -> dict[str, str] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    scripts = document.get("scripts") if isinstance(document, dict) else None
    if not isinstance(scripts, dict):
        return {}
    return {str(name): str(script) for name, script in scripts.items()}


_STRICT_OPTION = re.compile(
    r"[\"'](strict\w*|noImplicit\w+|noUnused\w+|noUnchecked\w+|exactOptional\w+|checkJs)[\"']"
    r"\s*:\s*(true|false)"
)


def strict_options(before: str, after: str) -> Iterator[str]:
    """TypeScript's strictness, read without parsing because comments are allowed there."""
    new = dict(_STRICT_OPTION.findall(after))
    for name, value in dict(_STRICT_OPTION.findall(before)).items():
        if value == "true" and new.get(name) != "true":
            yield f"{name} is no longer switched on"


_TARGET = re.compile(r"^((?:test|lint|check|verify|ci)[\w-]*)\s*:(?!=)", re.MULTILINE)


def recipes(before: str, after: str) -> Iterator[str]:
    """Targets of a Makefile that do nothing any more."""
    old, new = _recipes(before), _recipes(after)
    for target, lines in old.items():
        if target not in new:
            yield f"the target {target} was removed"
        elif _works(lines) and not _works(new[target]) and lines != new[target]:
            yield f"the target {target} does nothing now"


def _recipes(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if target := _TARGET.match(line):
            # prerequisites do work as well as a recipe does
            current = found.setdefault(target[1], [])
            current.append(line.partition(":")[2])
        elif line[:1] in ("\t", " ") and current is not None:
            current.append(line)
        elif line.strip() and not line.startswith("#"):
            current = None
    return found


def _works(lines: list[str]) -> bool:
    bare = (line.strip().lstrip("@-").partition("#")[0] for line in lines)
    return any(line and not _TRIVIAL.match(line) for line in bare)


_HOOK_ID = re.compile(r"^\s*-\s*id:\s*[\"']?([\w.-]+)", re.MULTILINE)


def hook_ids(before: str, after: str) -> Iterator[str]:
    """Hooks of pre-commit that are no longer run."""
    for name in sorted(set(_HOOK_ID.findall(before)) - set(_HOOK_ID.findall(after))):
        yield f"the hook {name} was removed"
