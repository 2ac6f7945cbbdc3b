"""One learning as a YAML file, in the shape people know: successes, failures, discoveries.

Every value is written as JSON, which is YAML too.  So a file as we wrote it is read line by line
without a YAML library (5,000 of them in a fraction of a second); whatever else a person makes of it
is read by the library.  Both are checked against the types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ralphloop.learning.model import Kind, Learning, Note, Source

LARGEST = 64 * 1024
_MOST_BRACKETS = 500
SECTIONS = {Kind.SUCCESS: "successes", Kind.FAILURE: "failures", Kind.DISCOVERY: "discoveries"}
_HEAD = ("task_id", "outcome", "timestamp", "captured")
_PROVENANCE = ("run", "iteration", "commit", "files", "carried")
_LINE = re.compile(r"(  - |    |  |)([a-z_]+):(?: +(.+))?")
_BARE = re.compile(r"(?!(?:true|false|null|yes|no|on|off)$)[A-Za-z][\w/-]*", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x7f-\xa0\xad\u2028\u2029\ufeff\ufffe\uffff]")
_decode = msgspec.json.Decoder().decode
_OUTCOMES = {"success": "passed", "failure": "failed"}


class _Entry(msgspec.Struct):
    pattern: str = ""
    description: str = ""
    lesson: str = ""
    category: str = "general"
    source: Source = Source.AGENT
    evidence: tuple[str, ...] = ()


def render(learning: Learning) -> str:
    """The file's text."""
    lines = [f"{key}: {_scalar(getattr(learning, key))}" for key in _HEAD]
    for kind, section in SECTIONS.items():
        notes = [note for note in learning.notes if note.kind is kind]
        lines.append(f"{section}:" if notes else f"{section}: []")
        for note in notes:
            lines += listed(_entry(note))
    lines.append("provenance:")
    lines += [f"  {key}: {_scalar(getattr(learning, key))}" for key in _PROVENANCE]
    return "\n".join(lines) + "\n"


def parse(text: str) -> Learning:
    """A learning from its file's text; ValueError where it is none."""
    raw = _plain_lines(text) or load_yaml(text)
    raw = msgspec.convert(raw, dict[str, Any])
    notes = [
        _note(kind, entry)
        for kind, name in SECTIONS.items()
        if raw.get(name)
        for entry in msgspec.convert(raw[name], list[_Entry])
    ]
    flat = {**(raw.get("provenance") or {}), **{key: raw[key] for key in _HEAD if key in raw}}
    flat["timestamp"] = str(flat.get("timestamp", ""))  # YAML makes a date of a bare one
    flat["outcome"] = _OUTCOMES.get(word := flat.get("outcome", ""), word)
    learning = msgspec.convert(flat, Learning)
    return msgspec.structs.replace(learning, notes=tuple(note for note in notes if note.text))


def listed(values: dict[str, Any]) -> Iterator[str]:
    """One item of a list of mappings."""
    for number, (key, value) in enumerate(values.items()):
        yield f"{'    ' if number else '  - '}{key}: {_scalar(value)}"


def load_yaml(text: str) -> Any:
    """Any YAML as plain data; ValueError where it cannot be read."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise ValueError("is nested too deeply")  # nesting takes the library quadratic time
    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, RecursionError, ArithmeticError) as error:
        raise ValueError(f"is not readable as YAML: {str(error)[:200]}") from None


def _entry(note: Note) -> dict[str, Any]:
    main = "description" if note.kind is Kind.DISCOVERY else "pattern"
    lesson = {"lesson": note.lesson} if note.kind is Kind.FAILURE else {}
    reusable = {"reusable": True} if note.kind is Kind.SUCCESS else {}
    about = {"category": note.category, **reusable}
    return {main: note.text, **lesson, **about, "source": note.source, "evidence": note.evidence}


def _note(kind: Kind, entry: _Entry) -> Note:
    kept = {key: getattr(entry, key) for key in ("lesson", "category", "source", "evidence")}
    return Note(kind=kind, text=entry.pattern or entry.description, **kept)


def _scalar(value: object) -> str:
    """JSON, and within it only characters that YAML allows."""
    text = msgspec.json.encode(_encodable(value)).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_encodable(item) for item in value] if isinstance(value, tuple) else value


def _plain_lines(text: str) -> dict[str, Any] | None:
    """The file read line by line; None where it is not as we write it."""
    root: dict[str, Any] = {}
    target, section = root, ""
    try:
        for line in text.removeprefix("---\n").split("\n"):
            if not line:
                continue
            indent, key, value = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
            if not indent and value is None:
                root[key] = {} if key == "provenance" else []
                target, section = root[key], key
                continue
            if indent == "  - ":
                target = {}
                root[section].append(target)
            elif not indent:
                target = root
            is_bare = value[0] not in '"[' and _BARE.fullmatch(value)
            target[key] = value if is_bare else _decode(value)
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
        return None
    return root
