"""Keys of more services, and the files that people keep them in: known by their form."""

from __future__ import annotations

import base64
import json
import random
import string
from pathlib import Path

import pytest

from ralphloop.redaction import redact
from tests.agents_run.test_redaction import _stream
from tests.timing import assert_linear, repeated

# In two parts, so that nobody's scanner mistakes this file for a leak.
_DICE = random.Random(7)
_ANY = string.ascii_letters + string.digits


def _some(length: int, alphabet: str = _ANY) -> str:
    return "".join(_DICE.choice(alphabet) for _ in range(length))


_HEX = "0123456789abcdef"
TOKENS = {
    "docker": "dckr" + "_pat_" + _some(27),
    "docker organisation": "dckr" + "_oat_" + _some(32),
    "grafana account": "glsa" + "_" + _some(32) + "_" + _some(8, _HEX),
    "grafana cloud": "glc" + "_" + _some(60),
    "grafana old": "eyJr" + "Ijoi" + _some(80),
    "atlassian": "ATATT" + "3xFfGF0" + _some(180),
    "bitbucket": "ATBB" + _some(32),
    "linear": "lin" + "_api_" + _some(40),
    "notion": "ntn" + "_" + _some(11, string.digits) + _some(35),
    "notion old": "secret" + "_" + _some(43),
    "supabase": "sbp" + "_" + _some(40, _HEX),
    "planetscale": "pscale" + "_tkn_" + _some(43),
    "planetscale password": "pscale" + "_pw_" + _some(43),
    "circleci": "CCIPAT" + "_" + _some(22) + "_" + _some(40, _HEX),
    "rubygems": "rubygems" + "_" + _some(48, _HEX),
    "twilio": "SK" + _some(32, _HEX),
    "twilio account": "AC" + _some(32, _HEX),
    "sentry": "sntryu" + "_" + _some(64, _HEX),
    "pulumi": "pul" + "-" + _some(40, _HEX),
    "postman": "PMAK" + "-" + _some(24, _HEX) + "-" + _some(34, _HEX),
    "doppler": "dp.pt" + "." + _some(43),
    "dynatrace": "dt0c01" + "." + _some(24).upper() + "." + _some(64).upper(),
    "gitlab deploy": "gldt" + "-" + _some(20),
    "gitlab runner": "glrt" + "-" + _some(20),
    "heroku": "HRKU" + "-AA" + _some(58),
    "fly": "fo1" + "_" + _some(43),
    "perplexity": "pplx" + "-" + _some(48),
    "sendinblue": "xkeysib" + "-" + _some(64, _HEX) + "-" + _some(16),
    "stripe test": "sk" + "_test_" + _some(24),
    "stripe webhook": "whsec" + "_" + _some(32),
    "netlify": "nfp" + "_" + _some(36),
    "replicate": "r8" + "_" + _some(37),
    "figma": "figd" + "_" + _some(40),
    "new relic": "NRAK" + "-" + _some(27, string.ascii_uppercase + string.digits),
    "alibaba": "LTAI" + _some(20),
    "bedrock": "ABSK" + _some(120),
    "openshift": "sha256~" + _some(43),
    "1password": "ops" + "_eyJ" + _some(260),
    "terraform": _some(14) + ".atlasv1" + "." + _some(67),
    "azure": _some(3) + "8Q~" + _some(34),
    "a key in base64": base64.b64encode(
        b"-----BEGIN RSA " + b"PRIVATE KEY-----\n" + b"MIIEpAIBAAKCAQEA7v2Jp4n8Xq5rT9uW3yB6" * 40
    ).decode(),
    "apache": "$apr1" + "$" + _some(8) + "$" + _some(22),
    "bcrypt": "$2y" + "$10$" + _some(53),
    "crypt": "$6" + "$" + _some(16) + "$" + _some(86),
    "sha": "{SHA}" + _some(27) + "=",
}
AROUND = ["{}", "key is {} here", '{{"text":"see {} here"}}', "export X={}\n", "     4→me: {}"]


@pytest.mark.attack
@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("around", AROUND)
def test_a_key_of_a_known_service_is_taken_out(kind: str, around: str) -> None:
    """Wherever it stands, its surroundings stay."""
    secret = TOKENS[kind]
    redacted = redact(around.format(secret))
    assert secret[20:36] not in redacted
    assert "[redacted]" in redacted
    before, after = around.format("\0").split("\0")
    assert redacted.startswith(before)
    assert redacted.endswith(after)


AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "zEXAMPLEKEY"
AWS_WITH_FEW_DIGITS = "abcdefGHIJklmnOPQRstuvWXYZabcdefGHIJkl" + "7+"
FILES = {
    "aws": (f"[default]\naws_secret_access_key = {AWS}\nregion = x\n", AWS),
    "aws session": (f"aws_session_token = {_some(200)}=\n", ""),
    "aws few digits": (f"aws_secret_access_key = {AWS_WITH_FEW_DIGITS}\n", AWS_WITH_FEW_DIGITS),
    "aws tabs": (f"aws_secret_access_key\t=\t{AWS}\n", AWS),
    "aws in words": (f"LEARNED: aws_secret_access_key = {AWS}, and the region is x", AWS),
    "ini token": (f"[github]\noauth_token = {_some(40)}\n", ""),
    "ini secret": (f"client_secret = {_some(32)}\n", ""),
    "ini key": (f"api_key = {_some(40, _HEX)}\n", ""),
    "pypirc": ("[pypi]\nusername = me\npassword = hG7kq2Lp9x\n", "hG7kq2Lp9x"),
    "npmrc": ("//registry.example/:_auth=" + base64.b64encode(b"me:hunter2x").decode(), ""),
    "docker config": (
        '{"auths": {"r": {"auth": "' + base64.b64encode(b"me:hunter2x").decode() + '"}}}',
        "",
    ),
    "kubeconfig": ("    client-key-data: " + _some(300) + "=\n", ""),
}


@pytest.mark.attack
@pytest.mark.parametrize("kind", FILES)
def test_the_files_that_people_keep_keys_in_lose_them(kind: str) -> None:
    """With blanks around the sign, as they are written; in JSON, too."""
    text, secret = FILES[kind]
    secret = secret or max(text.replace('"', " ").split(), key=len).rpartition("_auth=")[2]
    for said in (text, json.dumps({"text": text})):
        assert secret[4:] not in redact(said)
        assert "[redacted]" in redact(said)
    assert json.loads(redact(json.dumps({"text": text})))["text"][:4] == text[:4]


@pytest.mark.parametrize("kind", [*TOKENS, *FILES])
def test_a_stream_hides_it_wherever_it_is_cut(kind: str) -> None:
    """No chunking lets a part of one through."""
    text = f"x {TOKENS[kind]} y" if kind in TOKENS else FILES[kind][0]
    data = f"before\n{text}\nafter\n".encode()
    whole = redact(data.decode()).encode()
    for cut in range(0, len(data), 5):
        assert _stream(data, [cut]) == whole


@pytest.mark.parametrize(
    "line",
    [
        "token = k8sServiceAccountName",
        "const token = createToken256Bits",
        "secret = base64UrlEncode(header2)",
        "api_key = settings.OPENAI_API_KEY_V2",
        "password = get_password_v2_from_vault",
        "password = sha256_crypt",
        "access_key = keys[0]",
        "token = tokens[index + 1]",
        "secret_key = hashlib.sha256(b'x').hexdigest()",
        "aws_secret_access_key = os.environ['X']",
        "aws_secret_access_key = None",
        "aws_secret_access_key = credentials.secret_key",
        "aws_secret_access_key = <your key>",
        "token = uuid4().hex",
        "token = f16e5c2",
        "the secret_ prefix and glc_ and sbp_ alone",
        "secret_name_of_the_database_in_production_cluster",
        "lin_api_version and lin_api_calls_per_hour",
        "rubygems_version = 3.5.22",
        "SKIPPED 12 tests, SKU ACCESS",
        "sk_test_mode = true",
        "pul-request and pplx-model and fo1_",
        "sha256~x",
        "echo $1 $2 $$ ${PATH}",
        "const auth = 'enabled'",
        '"auth": "required"',
        "key-data: none",
        "price: $5$ and $6$ more",
        "docs/adr/ATATT.md",
        "figd_ is a prefix; nfp_alias_of_the_table_in_the_schema",
        "r8_register_of_the_cpu_holds_the_base_pointer_x",
    ],
)
def test_names_calls_and_prefixes_survive(line: str) -> None:
    """What is no secret is not touched, byte for byte."""
    assert redact(line) == line


def test_other_peoples_text_is_left_alone() -> None:
    """At most one line in two thousand of packages, their documents and data is touched."""
    place = Path(pytest.__file__).parents[1]
    files = [
        file
        for file in sorted(place.rglob("*"))
        if file.suffix in {".py", ".pyi", ".md", ".txt", ".json", ".toml", ".css", ".html", ".js"}
    ]
    lines = 0
    touched = []
    for file in files[::11][:400]:
        before = file.read_text("utf-8", "replace")[:60_000]
        after = redact(before)
        pairs = zip(before.splitlines(), after.splitlines(), strict=True)
        touched += [was[:200] for was, now in pairs if was != now]
        lines += before.count("\n")
    assert lines > 10_000
    assert len(touched) * 2000 <= lines, touched


@pytest.mark.parametrize(
    "unit",
    [
        "aws_secret_access_key = ", "secret = a1", "$2y$", "$apr1$x$", "_auth=QUJD", '"auth": "QUJD',
        "client-key-data: A", "LS0tLS1CRUdJTiBSU0Eg", "SK0", "AC1", "glsa_", "secret_", "token = x1y2",
        "password = a1b2", ".atlasv1.", "8Q~", "ops_eyJ", "whsec_", "dp.pt.",
    ],
)  # fmt: skip
def test_time_is_linear_on_text_of_beginnings(unit: str) -> None:
    """Hostile text costs time in proportion to its size."""
    assert_linear(repeated(unit), redact, 32_000)
