"""Keys in files and variables, and what is encrypted with them."""

from __future__ import annotations

import asyncio
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from ralphloop.config.model import FleetSection
from ralphloop.errors import InputError
from ralphloop.fleet.codec import (
    Codec,
    Illegible,
    SaidOpenly,
    converter_with,
    in_the_open,
    text_in,
)
from ralphloop.fleet.keys import Key, keys_of, new_key, why_apart
from tests.conftest import RunRalph

OLD, NEW, OTHER = (Key(secret=bytes([number]) * 32) for number in (1, 2, 3))
SECRET = "plugh xyzzy"


def _sent(codec: Codec, text: str) -> Payload:
    (payload,) = asyncio.run(converter_with(codec).encode([text]))
    return payload


def _read(codec: Codec, payload: Payload) -> str:
    (value,) = asyncio.run(converter_with(codec).decode([payload], [RawValue]))
    return text_in(value)


@given(st.text())
def test_what_is_encrypted_is_read_by_whoever_has_the_key(text: str) -> None:
    """And it is another sequence of bytes each time."""
    codec = Codec([NEW])
    first = _sent(codec, text)
    assert _read(codec, first) == text
    assert first.data != _sent(codec, text).data


def test_nothing_of_the_text_is_in_what_is_sent() -> None:
    """Only the id of the key can be read."""
    payload = _sent(Codec([NEW]), SECRET)
    assert SECRET.encode() not in payload.SerializeToString()
    assert NEW.id.encode() in payload.SerializeToString()


def test_the_first_key_writes_and_all_of_them_read() -> None:
    """So keys are exchanged while both are in use."""
    before, between, after = Codec([OLD]), Codec([OLD, NEW]), Codec([NEW, OLD])
    assert _read(between, _sent(before, SECRET)) == SECRET
    assert _read(after, _sent(between, SECRET)) == SECRET
    assert _read(between, _sent(after, SECRET)) == SECRET
    with pytest.raises(Illegible, match=f"the key {NEW.id}, and here is {OLD.id}"):
        _read(before, _sent(after, SECRET))


def test_who_has_no_key_is_told_which_one_it_was() -> None:
    """A reason instead of the text, never an error of a library."""
    with pytest.raises(Illegible, match=f"the key {NEW.id}, and no key is set here"):
        _read(Codec(), _sent(Codec([NEW]), SECRET))


def test_who_has_a_key_reads_no_plain_text() -> None:
    """Else whoever runs the server could give orders."""
    with pytest.raises(Illegible, match="plain text"):
        _read(Codec([NEW]), _sent(Codec(), SECRET))


@pytest.mark.parametrize("at", [0, 11, 12, -1])
def test_what_was_changed_on_its_way_is_not_read(at: int) -> None:
    """One bit of it is enough."""
    payload = _sent(Codec([NEW]), SECRET)
    data = bytearray(payload.data)
    data[at] ^= 1
    payload.data = bytes(data)
    with pytest.raises(Illegible, match="changed on its way"):
        _read(Codec([NEW]), payload)


def test_what_was_cut_short_is_not_read() -> None:
    """Also where nothing is left."""
    payload = _sent(Codec([NEW]), SECRET)
    payload.data = b""
    with pytest.raises(Illegible, match="changed on its way"):
        _read(Codec([NEW]), payload)


@pytest.mark.parametrize("keys", [(), (NEW,)])
def test_a_refusal_in_the_open_reaches_everybody_as_no_more_than_that(keys: tuple[Key]) -> None:
    """It can be read without a key, and is never taken for an order or a report."""
    (payload,) = asyncio.run(converter_with(Codec([OTHER])).encode([in_the_open("no")]))
    with pytest.raises(SaidOpenly, match="no"):
        _read(Codec(keys), payload)


def test_the_words_of_a_failure_are_encrypted() -> None:
    """Its message, its details and where in the code it was; whoever has the key reads them."""
    converter = converter_with(Codec([NEW]))
    failure = Failure()
    asyncio.run(converter.encode_failure(ApplicationError(SECRET, SECRET), failure))
    assert SECRET.encode() not in failure.SerializeToString()
    found = asyncio.run(converter.decode_failure(failure))
    assert isinstance(found, ApplicationError)
    assert found.message == SECRET
    assert list(found.details) == [SECRET]


def test_a_failure_that_cannot_be_read_is_still_a_failure() -> None:
    """Without the key there are no words, and no error of a library either."""
    failure = Failure()
    sent = ApplicationError(SECRET, SECRET)
    asyncio.run(converter_with(Codec([NEW])).encode_failure(sent, failure))
    found = asyncio.run(converter_with(Codec([OTHER])).decode_failure(failure))
    assert isinstance(found, ApplicationError)
    assert found.message == "Encoded failure"


# Where keys come from


def test_a_key_is_made_for_its_owner_alone(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Mode 0600; the words name its id and never the key."""
    path = tmp_path / "own" / "fleet.key"
    made = run_ralph("fleet", "key", str(path), cwd=tmp_path)
    (key,) = keys_of(FleetSection(codec_key_file=str(path)), {})
    assert made.returncode == 0, made.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key.id in made.stdout
    assert path.read_text().strip() not in made.stdout + made.stderr


def test_a_key_that_is_there_is_left_alone(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A second one is put behind it where that is asked for."""
    path = tmp_path / "fleet.key"
    run_ralph("fleet", "key", str(path), cwd=tmp_path)
    before = path.read_text()
    again = run_ralph("fleet", "key", str(path), cwd=tmp_path)
    assert again.returncode == 64
    assert path.read_text() == before
    added = run_ralph("fleet", "key", "--add", str(path), cwd=tmp_path)
    first, second = keys_of(FleetSection(codec_key_file=str(path)), {})
    assert path.read_text().startswith(before)
    assert f"writes with {first.id}, reads {second.id} as well" in added.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_keys_of_a_variable_are_lines_as_those_of_a_file() -> None:
    """The setting names the variable, not the key; remarks are left out."""
    text = f"# of this year\n{NEW.line}\n\n{OLD.line}  # of the last\n{NEW.line}\n"
    found = keys_of(FleetSection(codec_key="MINE"), {"MINE": text})
    assert found == (NEW, OLD)


def test_a_key_shows_itself_only_by_its_id() -> None:
    """In a stack trace or a log, too."""
    key = new_key()
    assert repr(key) == f"Key({key.id})"
    assert key.id != new_key().id


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no key in it"),
        ("# nothing\n", "there is no key in it"),
        ("hunter2\n", "line 1 is no key of 32 bytes"),
        (f"{NEW.line}\n{NEW.line[:-8]}\n", "line 2 is no key of 32 bytes"),
        ("§" * 44, "line 1 is no key of 32 bytes"),
    ],
)
def test_what_is_no_key_is_refused_without_a_word_of_it(
    tmp_path: Path, text: str, words: str
) -> None:
    """The line is named, and what stands in it is not repeated."""
    path = tmp_path / "fleet.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InputError, match=words) as refused:
        keys_of(FleetSection(codec_key_file=str(path)), {})
    assert "hunter2" not in f"{refused.value} {refused.value.next_step}"


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """As ssh does it, with what to type."""
    path = tmp_path / "fleet.key"
    path.write_text(f"{NEW.line}\n")
    path.chmod(0o640)
    with pytest.raises(InputError, match="others on this machine can read") as refused:
        keys_of(FleetSection(codec_key_file=str(path)), {})
    assert refused.value.next_step == f"chmod 600 {path}"


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (FleetSection(codec_key_file="/nowhere/fleet.key"), "/nowhere/fleet.key: No such file"),
        (FleetSection(codec_key="MINE"), "the variable MINE is not set"),
        (FleetSection(codec_key="MINE", codec_key_file="x"), "a file and a variable are named"),
    ],
)
def test_a_key_that_is_missing_is_named(section: FleetSection, words: str) -> None:
    """Nobody goes on in plain text instead."""
    with pytest.raises(InputError, match=re.escape(words)):
        keys_of(section, {})


_IDS = st.lists(st.sampled_from("abc"), unique=True, max_size=3)


@given(_IDS, _IDS)
def test_two_sides_are_apart_just_where_one_cannot_read_the_other(
    ours: list[str], theirs: list[str]
) -> None:
    """What is said before a night is what the codec would find out during it."""
    keys = {"a": OLD, "b": NEW, "c": OTHER}
    here, there = (Codec([keys[it] for it in side]) for side in (ours, theirs))
    reads = True
    for one, other in ((here, there), (there, here)):
        try:
            _read(other, _sent(one, SECRET))
        except Illegible:
            reads = False
    assert (why_apart(ours, "one", theirs) == "") == reads
