"""What a mutant hands out instead of what it has: the value, altered as little as possible.

Two values that were equal are equal when they are altered, and of the same kind: whoever only asks
for the type, or whether there is something at all, does not see a difference.
"""
# mypy: ignore-errors
# ruff: noqa: INP001, BLE001

import copy
import datetime as dt
import functools
import types

MARK = "ralph"
_DEEPEST = 3
_NUMBERS = ("Decimal", "Fraction", "ndarray", "Series", "float64", "int64")

count = [0]  # values that were altered
nothings = [0]  # the same of what was None
truths = [0]  # and of what was true or false
always = [None]  # what truth values are instead, whatever they were; nothing else is altered then
soft = set()  # what agrees with whatever it is compared with, in words
listeners = []  # called after each of them


class _Kept(Exception):
    """This value cannot be altered."""


def bend(value):
    """The value altered, or the same where it cannot be."""
    if always[0] is not None:
        if type(value) is not bool:
            return value
        _tell_listeners(count)
        return always[0]
    _look_whether_soft(value)
    try:
        other = _altered(value, _DEEPEST)
    except Exception:  # whatever a foreign object does when it is copied
        return value
    if type(value) is bool:
        truths[0] += 1
    _tell_listeners(nothings if value is None else count)
    return other


def _tell_listeners(counter):
    counter[0] += 1
    for listener in listeners:
        listener()


def each(values):
    """The same values, each of them altered."""
    for value in values:
        yield bend(value)


_SOME = ((918273645, 918273646), ("one ralph", "another ralph"), (object(), object()))


def _look_whether_soft(value):
    """Keep in mind what is equal to anything, holds anything, or is smaller and larger at once."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return
    questions = (
        ("is equal to whatever it is compared with", _is_equal_to_all),
        ("is smaller and larger than what it is compared with", _is_on_both_sides),
        ("says that it holds whatever it is asked for", _holds_all),
    )
    for words, ask in questions:
        if _is_so(ask, value, kind):
            soft.add(kind.__name__ + " " + words)


def _is_so(ask, value, kind):
    try:
        return ask(value, kind)
    except Exception:  # most objects cannot be compared with everything
        return False


def _is_equal_to_all(value, _kind):
    return any((value == one) is True and (value == other) is True for one, other in _SOME)


def _is_on_both_sides(value, kind):
    number = _SOME[0][0]
    return kind.__lt__ is not object.__lt__ and (value < number) is (value > number) is True


def _holds_all(value, kind):
    return hasattr(kind, "__contains__") and all(pair[0] in value for pair in _SOME)


def _altered(value, depth):
    kind = type(value)
    if kind is bool:
        return not value
    if value is None:
        return MARK
    if isinstance(value, (types.ModuleType, type)) or depth == 0:
        raise _Kept
    if hasattr(kind, "__members__"):
        return _other_member(value, kind)
    if isinstance(value, (int, float, complex)):
        other = value - 1 if value == -1 else value + 1
        return kind(value / 2 if other == value else other)  # too large for one to matter
    if isinstance(value, str):
        return kind(value + MARK)
    if isinstance(value, (bytes, bytearray)):
        return value + b"r"
    for of, altered in _WAYS:
        if isinstance(value, of):
            return altered(value, depth)
    return _altered_object(value, kind, depth)


def _other_member(value, kind):
    others = [one for one in kind.__members__.values() if one is not value]
    if not others:
        raise _Kept
    return others[0]


def _altered_row(value, depth):
    """Every element altered, and of what may be of any length one more."""
    kind = type(value)
    if hasattr(value, "_replace"):
        fields = {name: _altered_or_same(getattr(value, name), depth) for name in value._fields}
        return value._replace(**fields)
    found = [_altered_or_same(one, depth) for one in value]
    if kind is tuple and value:
        are_same = all(new is old for new, old in zip(found, value))  # noqa: B905
        return value[:-1] if are_same else tuple(found)
    found.append(found[-1] if found else MARK)
    return found if kind is range else kind(found)


def _altered_set(value, depth):
    found = {_altered_or_same(one, depth) for one in value} or {MARK}
    return type(value)(sorted(value, key=repr)[:-1] if found == value else found)


def _altered_dict(value, depth):
    """Every value altered; where none can be, one is missing."""
    other = copy.copy(value)
    changed = 0
    for key, was in list(value.items()):
        now = _altered_or_same(was, depth)
        if now is not was:
            other[key] = now
            changed += 1
    if not value:
        other[MARK] = MARK
    elif not changed:
        del other[list(value)[-1]]
    return other


def _altered_function(function, _depth):
    @functools.wraps(function)
    def other(*args, **kwargs):
        return bend(function(*args, **kwargs))

    return other


def _never(_value, _depth):
    raise _Kept


_WAYS = (
    ((list, tuple, range), _altered_row),
    ((set, frozenset), _altered_set),
    (dict, _altered_dict),
    ((dt.date, dt.timedelta), lambda value, _depth: value + dt.timedelta(days=1)),
    (dt.time, lambda value, _depth: value.replace(hour=(value.hour + 1) % 24)),
    (types.FunctionType, _altered_function),
    ((BaseException, dt.tzinfo), _never),
)


def _altered_object(value, kind, depth):
    if kind.__name__ in _NUMBERS:
        return value + 1
    if hasattr(value, "__fspath__") and hasattr(value, "joinpath"):
        return value.joinpath(MARK)
    if hasattr(value, "__next__"):
        return each(value)
    if hasattr(value, "__await__"):
        return _awaited(value)
    if "Mock" in kind.__name__:
        raise _Kept
    return _altered_copy(value, depth)


async def _awaited(value):
    return bend(await value)


def _altered_or_same(value, depth):
    _look_whether_soft(value)
    try:
        return _altered(value, depth - 1)
    except Exception:  # as above
        return value


def _altered_copy(value, depth):
    """A copy whose plain attributes are all different."""
    names = list(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    other = copy.copy(value)
    if other is value:
        raise _Kept
    changed = 0
    for name in dict.fromkeys(names):
        if name in ("__dict__", "__weakref__") or not hasattr(value, name):
            continue
        was = getattr(value, name)
        now = _altered_or_same(was, depth)
        if now is not was:
            object.__setattr__(other, name, now)
            changed += 1
    if not changed:
        raise _Kept
    return other
