"""What all values are made of."""

import re
from contextlib import suppress
from typing import TypeVar, dataclass_transform

import msgspec

_S = TypeVar("_S", bound=msgspec.Struct)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all values: immutable, compared by content, JSON without its defaults."""


def snake_case(name: str) -> str:
    """What a kind of event or change is called where it is written down."""
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


def readable(written: object, kind: type[_S]) -> _S:
    """The value; of one that another version wrote, the parts that can be read."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(written, kind)
    found = written if isinstance(written, dict) else {}
    kept = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in found:
            part = found[field.encode_name]
            of = field.type
            is_struct = isinstance(of, type) and issubclass(of, msgspec.Struct)
            in_parts = is_struct and not any(it.required for it in msgspec.structs.fields(of))
            with suppress(msgspec.ValidationError):
                kept[field.name] = readable(part, of) if in_parts else msgspec.convert(part, of)
    return kind(**kept)
