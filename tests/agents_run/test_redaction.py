"""Secrets are taken out of text and streams, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.redaction import Joiner, Redactor, redact, redact_bytes, secret_values
from tests.timing import assert_linear, repeated

# Put together here so that no scanner mistakes this file for a leak.
ANTHROPIC = "sk-ant-" + "api03-Zx8Kq2LmN4pR7sT1vW3yB6dF9hJ0"
OPENAI = "sk-" + "proj-9fK2mQ7xR4tV1zB8cN5wL3hJ6gD0sA"
GITHUB = "ghp" + "_1a2B3c4D5e6F7g8H9i0JkLmNoPqRsTuVwXyZ"
GITHUB_FINE = "github" + "_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789"
GITLAB = "glpat" + "-x7Yz3Kq9Lm2Np5Rt8Vw1"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
SLACK = "xoxb" + "-123456789012-abcdefGHIJKL"
GOOGLE = "AIza" + "SyD4x7Kq2LmN8pR1sT5vW9yB3dF6hJ0aC2e"
STRIPE = "sk" + "_live_4eC39HqLyjWDarjtT1zdp7dc"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
RANDOM = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzq8"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA7v2Jp4n8Xq5rT9uW3yB6dF1hJ0kLmN4pR7sT2vZ8cX5eG9iK\n" * 6
    + "-----END RSA PRIVATE KEY-----"
)

HEX = "0f8a3c5d7e9b1246" * 4
BASE64 = "q7Zk2Lm9Np4Rt8Vw1Xy5Bd6Fh0Jc3Gs"
MORE = [
    "xapp" + "-1-A012BCD-4567-" + HEX,
    "xai" + "-" + BASE64 * 2,
    "gsk" + "_" + BASE64 + "WGdyb3FY",
    "SG" + "." + BASE64[:22] + "." + BASE64 + "abcdefghijk",
    "dop" + "_v1_" + HEX,
    "hvs" + ".CAESI" + BASE64,
    "dapi" + HEX[:32],
    "shpat" + "_" + HEX[:32],
    "AGE-SECRET" + "-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "hooks.slack" + ".com/services/T024AB1CD/B056EF7GH/" + BASE64[:24],
    "discord" + ".com/api/webhooks/112233445566778899/" + BASE64 * 2,
]

TOKENS = [
    ANTHROPIC, OPENAI, GITHUB, GITHUB_FINE, GITLAB, AWS, SLACK, GOOGLE, STRIPE, JWT, PEM, *MORE,
]  # fmt: skip


@pytest.mark.parametrize("secret", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "key is {}.", '{{"text":"see {} here"}}', "export X={}\n"]
)
def test_a_known_kind_of_token_is_taken_out_wherever_it_stands(secret: str, around: str) -> None:
    """A token of a known kind is replaced, its surroundings stay."""
    redacted = redact(around.format(secret))
    assert secret[6:] not in redacted
    assert "[redacted]" in redacted
    before, after = around.format("\0").split("\0")
    assert redacted.startswith(before)
    assert redacted.endswith(after)


@pytest.mark.parametrize(
    "line",
    [
        f"AWS_SECRET_ACCESS_KEY={RANDOM}",
        f'password = "{RANDOM}"',
        f"password: '{RANDOM}'",
        f'"client_secret": "{RANDOM}"',
        f'{{"text":"\\"apiKey\\": \\"{RANDOM}\\""}}',
        f"DB_PASSWORD={RANDOM}",
        f"x-api-key: {RANDOM}",
        f"access_token={RANDOM}&scope=all",
        f"Authorization: Bearer {RANDOM}",
        f"authorization: token {RANDOM}",
        f'curl -H "Authorization: Basic {RANDOM}"',
        f"Bearer {RANDOM}",
        f"postgres://app:{RANDOM.replace('/', 'x')}@db.example.com/app",
        f'"refreshToken":"{RANDOM}"',
        f"--token={RANDOM}",
    ],
)
def test_a_random_value_next_to_a_secret_name_is_taken_out(line: str) -> None:
    """Assignments, headers and addresses lose the value and keep the rest."""
    redacted = redact(line)
    assert RANDOM[5:] not in redacted
    assert "[redacted]" in redacted
    assert redacted[:5] == line[:5]


@pytest.mark.parametrize(
    "line, secret",
    [
        ("DB_PASSWORD=Tr0ub4dor&3xK9", "Tr0ub4dor&3xK9"),
        ("password: s3cretPa55word9", "s3cretPa55word9"),
        ('"password": "hunter2x9"', "hunter2x9"),
        ("PGPASSWORD=s3cretPw2024 psql", "s3cretPw2024"),
        ("MAIL_PASS=Geheim99x1", "Geheim99x1"),
        ("DB_PASS_2: 'x7!Geheim'", "x7!Geheim"),
        ("SSH_PASSPHRASE=correct9horse8x", "correct9horse8x"),
        ("<password>Abc12345x</password>", "Abc12345x"),
        ("machine example.com login me password s3cretPa55", "s3cretPa55"),
        ("mysql -h db -uroot -ps3cret shop", "s3cret"),
        ("redis://:p4ssw0rdXY@cache:6379/0", "p4ssw0rdXY"),
        ("https://x7Yz3Kq9Lm2Np5Rt8Vw1@github.com/a/b.git", "x7Yz3Kq9Lm2Np5Rt8Vw1"),
        ("https://me:geheim@example.com/", "geheim"),
        ("Cookie: session=x7Yz3Kq9Lm2Np5Rt; csrf=8Vw1b2", "x7Yz3Kq9Lm2Np5Rt; csrf=8Vw1b2"),
        (
            "bot 1234567890:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
            "HdqTcvCH1vGWJxfSeofSAs0K5PALD",
        ),
    ],
)
def test_common_passwords_are_taken_out(line: str, secret: str) -> None:
    """What people choose is short; beside its name, in an address or a command it is found."""
    for said in (line, json.dumps({"text": line})):
        redacted = redact(said)
        assert secret not in redacted
        assert "[redacted]" in redacted
    assert json.loads(redact(json.dumps({"text": line})))["text"].startswith(line[:4])


@pytest.mark.parametrize(
    "form",
    [
        lambda n, line: f"{n:6}\u2192{line}",
        lambda n, line: f"{n:6}\t{line}",
        lambda _, line: f"> {line}",
        lambda _, line: f"+{line}",
    ],
    ids=["arrows", "tabs", "quoted", "diff"],
)
@pytest.mark.parametrize("coded", [0, 1, 2])
@pytest.mark.parametrize("whole", [True, False])
def test_a_key_is_taken_out_however_its_lines_are_shown(
    form: Callable[[int, str], str], coded: int, whole: bool
) -> None:
    """With line numbers, quoted, in JSON or JSON inside of JSON, cut anywhere, without its end."""
    lines = PEM.splitlines()[: None if whole else -1]
    said = "\n".join(form(n, line) for n, line in enumerate(lines, 1)) + "\nfree\n"
    for _ in range(coded):
        said = json.dumps(said)
    data = said.encode()
    for cut in range(0, len(data), 7):
        redacted = _stream(data, [cut])
        assert b"MIIE" not in redacted
        assert b"vZ8cX5e" not in redacted
        assert b"free" in redacted


@pytest.mark.parametrize(
    "line",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "index 83db48f..bf269f4 100644",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "token = request.headers.get('X-Token')",
        "const token = generateToken2FA();",
        "const token = createToken256Bits",
        "let token: TokenV2Response;",
        "token = k8sServiceAccountName",
        "secret: parseJWTv2FromHeader",
        "password = os.environ['DB_PASSWORD_2']",
        "password: str = Field(min_length=12)",
        'api_key = "your-api-key-here"',
        'secret_name = "my_app_secrets"',
        "token=process.env.GITHUB_TOKEN_2",
        '"input_tokens":123456789012345,"output_tokens":5',
        '{"cache_creation_input_tokens": 0, "service_tier": "standard"}',
        "max_tokens: 128000",
        "def test_password_reset_token_expires_after_24_hours(): ...",
        "for key in sorted(api_keys): print(key)",
        "https://github.com/example/project.git",
        "git@github.com:example/project.git",
        "http://localhost:8080/@scope/package",
        "class sk-spinner-three-bounce-and-more",
        "the bearer of bad news",
        "PublicKeyToken=null",
        "-----BEGIN CERTIFICATE-----",
        'startswith("-----BEGIN PRIVATE KEY-----") and endswith("-----END PRIVATE KEY-----")',
        "tests/test_tokens.py::test_access_token_is_refreshed_once PASSED",
        "import { npm_config_registry } from './npm_config'",
        "uuid 123e4567-e89b-12d3-a456-426614174000",
        'tokenizer="cl100k_base_2024"',
        "tests_passed=12of34abc5 two_passes: a1b2c3d4e5 bypass=a1b2c3d4e5",
        "password=config.db2.main1",
        "password=md5x(value)",
        "token=sha-x7y-bytes-of-the-header",  # one digit is in many a name
        "docker run -p 8080:80 mysql",
        "the password reset2fa form",
        "ssh://git@github.com/example/project.git",
        "https://docs.example.com/v2@latest-and-greatest",
        "Set-Cookie: theme=dark",
    ],
)
def test_code_hashes_and_prose_survive(line: str) -> None:
    """What is no secret is not touched, byte for byte."""
    assert redact(line) == line


def test_json_lines_stay_json() -> None:
    """Redaction inside a JSON string leaves a JSON line that says the rest."""
    text = f'key {ANTHROPIC}, password="{RANDOM}", and\n{PEM}\nend'
    line = json.dumps({"type": "assistant", "text": text})
    read = json.loads(redact(line))
    assert read["text"].startswith("key [redacted], password=")
    assert read["text"].endswith("end")
    assert "MIIE" not in read["text"]
    assert RANDOM not in read["text"]


def test_values_of_secret_looking_variables_are_taken_out() -> None:
    """A value that only the environment names as secret is found, also when JSON-escaped."""
    env = {
        "MY_SERVICE_TOKEN": 'correct"horse\\battery',
        "DEPLOY_KEY": "line-one-of-the-key\nline-two-of-the-key",
        "SSH_AUTH_SOCK": "/tmp/ssh-XXXX/agent.1",
        "KEYBOARD": "de-latin1-nodeadkeys",
        "PIN_TOKEN": "12345678",
        "API_TOKEN": "short",
        "TOKEN_FILE": "/run/secrets/token",
    }
    secrets = secret_values(env)
    assert set(secrets) == {env["MY_SERVICE_TOKEN"], env["DEPLOY_KEY"]}
    said = f"used {env['MY_SERVICE_TOKEN']} and {env['DEPLOY_KEY']} on de-latin1-nodeadkeys"
    for form in (said, json.dumps(said)):
        redacted = redact(form, secrets)
        assert "battery" not in redacted
        assert "line-two" not in redacted
        assert "de-latin1-nodeadkeys" in redacted


def _stream(data: bytes, sizes: list[int], secrets: tuple[str, ...] = ()) -> bytes:
    redactor = Redactor(secrets)
    out, at = [], 0
    for size in sizes:
        out.append(redactor.feed(data[at : at + size]))
        at += size
    out.append(redactor.feed(data[at:]))
    out.append(redactor.finish())
    return b"".join(out)


PIECES = st.sampled_from(
    [ANTHROPIC, OPENAI, GITHUB, JWT, PEM, f'token="{RANDOM}"', "\n", " ", "plain words ", "x" * 9000,
     "a" * 300, "é", "9fceb02d0ae598e95dc970b74767f19372d61af8", "hidden-by-name-only"]
)  # fmt: skip


@given(pieces=st.lists(PIECES, max_size=12), sizes=st.lists(st.integers(0, 5000), max_size=8))
def test_any_chunking_hides_the_same_as_the_whole(pieces: list[str], sizes: list[int]) -> None:
    """Where a stream is cut makes no difference to what is passed on."""
    data = "".join(pieces).encode()
    secrets = ("hidden-by-name-only",)
    assert _stream(data, sizes, secrets) == redact_bytes(data, secrets)


@pytest.mark.parametrize("secret", TOKENS)
def test_a_secret_cut_at_every_place_is_still_hidden(secret: str) -> None:
    """A token split over two chunks leaves no part of itself behind."""
    data = f"before {secret} after\n".encode()
    for cut in range(len(data)):
        assert _stream(data, [cut]) == b"before [redacted] after\n"


def test_whole_lines_are_passed_on_at_once() -> None:
    """A finished line is not held back, so a log can be followed and survives a crash."""
    redactor = Redactor()
    assert redactor.feed(b"one\ntwo\nthr") == b"one\ntwo\n"
    assert redactor.feed(b"ee\n") == b"three\n"
    assert redactor.finish() == b""


def test_an_endless_line_is_held_back_by_a_bounded_part_only() -> None:
    """A line without end flows, but for the last few kilobytes."""
    redactor = Redactor()
    passed = sum(len(redactor.feed(b"x" * 65536)) for _ in range(20))
    assert 20 * 65536 - passed <= 16 * 1024
    assert passed + len(redactor.finish()) == 20 * 65536


@given(st.binary(max_size=3000))
def test_arbitrary_bytes_never_raise(data: bytes) -> None:
    """Any bytes can be redacted, whole or in pieces."""
    redact_bytes(data)
    _stream(data, [7, 100])


@pytest.mark.parametrize(
    "unit", ["token", "token=", "sk-", "eyJ", "://a:", "-----BEGIN PRIVATE KEY-----", "bearer ", "ghp_",
             'password="aB3dE5gH7jK9mN1pQ" ', "mysql -x ", "cookie: a=", "1\u2192", "apikey=\\\"", "-----BEGIN ", "AIza", "=", "\\"],
)  # fmt: skip
def test_time_is_linear_on_hostile_text(unit: str) -> None:
    """Text made of nothing but beginnings of secrets costs time in proportion to its size."""

    def stream(text: str) -> None:
        redactor, data = Redactor(), text.encode()
        for at in range(0, len(data), 65536):
            redactor.feed(data[at : at + 65536])
        redactor.finish()

    assert_linear(repeated(unit), stream, 32_000)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("DB_PASSWORD=hunter2", "hunter2"),
        ("MYSQL_ROOT_PASSWORD=supersecret", "supersecret"),
        ('export SECRET_KEY="abcdefgh"', "abcdefgh"),
        ('SMTP_PASS="abc"', "abc"),
        ('{"password": "correcthorse"}', "correcthorse"),
        ('{\\"password\\": \\"hunter2\\"}', "hunter2"),
        ("db:\n  password: hunter2\n", "hunter2"),
        ("https://x.example/?token=abc123de&page=2", "abc123de"),
    ],
)
def test_an_env_line_is_a_secret_whatever_its_length(line: str, secret: str) -> None:
    """The commonest lines of .env files, JSON and YAML, and tokens in addresses."""
    assert secret not in redact(line)


@pytest.mark.parametrize(
    "line",
    [
        "def login(password: str) -> None:",
        "    password: SecretStr",
        '"password": {"type": "string"}',
        '{"password": "string"}',
        "DB_PASSWORD=${DB_PASSWORD}",
        "PASSWORD=<your password>",
        "PASSWORD=os.environ['PASSWORD']",
        "Password: ",
        "https://x.example/?key=name&sort=up",
    ],
)
def test_the_place_of_a_password_is_none(line: str) -> None:
    """Types, schemas, references and prompts survive."""
    assert redact(line) == line


@pytest.mark.attack
@pytest.mark.parametrize("size", [1, 4, 17])
def test_a_token_that_streams_in_pieces_is_taken_out(size: int) -> None:
    """Spelled over events, no piece of it is kept; every line stays a line of JSON."""
    said = f"The key is {GITHUB}, use it. " + "More follows. " * 100
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}}
    lines = [
        json.dumps({**delta, "delta": {"type": "text_delta", "text": piece}}) for piece in pieces
    ]
    stream = "\n".join([*lines, '{"type": "result"}', ""]).encode()
    joiner, parts = Joiner(), [stream[at : at + 1000] for at in range(0, len(stream), 1000)]
    out = b"".join([*map(joiner.feed, parts), joiner.finish()])
    read = [json.loads(line) for line in out.splitlines()]
    assert len(read) == len(pieces) + 1
    text = "".join(each["delta"]["text"] for each in read if "delta" in each)
    assert not any(GITHUB[at : at + 8] in text for at in range(len(GITHUB) - 8))
    assert text.endswith("More follows. " * 50)


def test_ordinary_source_is_left_alone() -> None:
    """At most one line in a thousand of installed packages looks like a secret and is none."""
    files = sorted(Path(pytest.__file__).parents[1].rglob("*.py"))[::17][:150]
    lines = changed = 0
    for file in files:
        before = file.read_text("utf-8", "replace")[:60_000]
        pairs = zip(before.splitlines(), redact(before).splitlines(), strict=True)
        changed += sum(was != now for was, now in pairs)
        lines += before.count("\n")
    assert lines > 10_000
    assert changed * 1000 <= lines
