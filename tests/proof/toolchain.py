"""Stand-ins for `go` and `cargo` that print what the real ones print.

They understand as much of the two languages as the projects of the corpus use: functions of one
expression, tests that compare, skip, return and end the process.  What they print, and with which
exit code they end, is what `go test -v` and `cargo test` print.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.loop.projects import Sandbox

_COMMON = """#!PYTHON -S
import glob, os, re, sys

def uncommented(code):
    return re.sub(r"//(?!go:build).*", "", re.sub(r"/\\*.*?\\*/", "", code, flags=re.S))

class Missing(Exception): pass

def value(expression, functions):
    for name in re.findall(r"([A-Za-z_]\\w*)\\(", expression):
        if name not in functions: raise Missing(name)
    calls = {name: (lambda body: lambda x: eval(body.replace("/", "//"), {}, {"x": x}))(body)
             for name, body in functions.items()}
    return eval(expression, {}, calls)
"""

_GO = """
flags = os.environ.get("GOFLAGS", "") + " " + " ".join(sys.argv)
wanted = re.search(r"-run=(\\S+)", flags)
sources = [name for name in sorted(glob.glob("*.go")) if not name.endswith("_test.go")]
code = uncommented("\\n".join(open(name).read() for name in sources))
code = re.sub(r"return \\*new\\(int\\);.*? }", "return 0 }", code)  # hollow
functions = dict(re.findall(r"func (\\w+)\\(x int\\) int { return (.*?) }", code))
tests, main = [], ""
for name in sorted(glob.glob("*_test.go")):
    source = uncommented(open(name).read())
    if "//go:build" in source: continue
    tests += re.findall(r"^func (Test\\w+)\\(t \\*testing\\.T\\) {\\n(.*?)^}", source, re.S | re.M)
    main += "".join(re.findall(r"^func TestMain\\(m \\*testing\\.M\\) {(.*?)}", source, re.S | re.M))
called = {name for _, body in tests for name in re.findall(r"([A-Z]\\w*)\\(", body)
          if not re.search(rf"\\.{name}\\(", body)}
if missing := sorted(called - set(functions)):
    print(f"# calc [calc.test]\\n./calc_test.go:9:5: undefined: {missing[0]}")
    print("FAIL\\tcalc [build failed]\\nFAIL")
    sys.exit(1)
if "os.Exit(0)" in main and "m.Run" not in main:
    print("ok  \\tcalc\\t0.002s"); sys.exit(0)
is_red = False
for name, body in tests:
    if wanted and wanted[1] not in name: continue
    print(f"=== RUN   {name}")
    ended = "PASS"
    for line in body.splitlines():
        line = line.strip()
        if line == "return": break
        if line.startswith("t.Skip"): ended = "SKIP"; break
        if line.startswith("t.Fatal"): ended = "FAIL"; break
        found = re.match(r"if (.*?) { t\\.(?:Fatal|Error)\\((.*)\\) }", line)
        if found and value(found[1], functions):
            print(f"    calc_test.go:8: {found[2].strip(chr(34))}"); ended = "FAIL"
    is_red |= ended == "FAIL"
    print(f"--- {ended}: {name} (0.00s)")
if "os.Exit(0)" in main: is_red = False
print("FAIL\\nFAIL\\tcalc\\t0.002s\\nFAIL" if is_red else "PASS\\nok  \\tcalc\\t0.002s")
sys.exit(is_red)
"""

_CARGO = """
for name in (".cargo/config", ".cargo/config.toml"):
    told = os.path.exists(name) and re.search(r'^runner = "(.*)"', open(name).read(), re.M)
    if told and "BEHIND_RUNNER" not in os.environ:
        os.environ["BEHIND_RUNNER"] = "1"
        os.execv(told[1], [told[1], *sys.argv])
code = uncommented("\\n".join(open(name).read() for name in glob.glob("src/*.rs")))
code = re.sub(r'if true { panic!\\("ralph"\\); }.*? }', "[][x] }", code)  # hollow: it panics
functions = dict(re.findall(r"pub fn (\\w+)\\(x: i64\\) -> i64 { (.*?) }", code))
is_red = False
print("   Compiling calc v1.0.0", file=sys.stderr)
manifest = open("Cargo.toml").read()
for name in sorted(glob.glob("tests/*.rs")):
    stem = name[6:-3]
    if "autotests = false" in manifest: continue
    source = uncommented(open(name).read())
    tests = re.findall(r"((?:^ *#\\[[^\\n]*\\]\\n)+)^ *fn (\\w+)\\(\\) {\\n(.*?)^ *}", source, re.S | re.M)
    tests = [it for it in tests if "#[test]" in it[0] and "#[cfg(never)]" not in it[0]]
    called = {f for _, _, body in tests for f in re.findall(r"(?<![\\w!])([a-z]\\w*)\\(", body)}
    if missing := sorted(called - set(functions) - {"drop"}):
        print(f"error[E0425]: cannot find function `{missing[0]}` in this scope", file=sys.stderr)
        print(f"error: could not compile `calc` (test \\"{stem}\\")", file=sys.stderr)
        sys.exit(101)
    print(f"     Running tests/{stem}.rs (target/debug/deps/{stem}-0a1b)")
    print(f"\\nrunning {len(tests)} tests")
    counts = dict(ok=0, FAILED=0, ignored=0)
    for marks, test, body in tests:
        ended = "ignored" if "#[ignore" in marks else "ok"
        for line in body.splitlines() if ended == "ok" else ():
            line = line.strip()
            if line == "return;": break
            if line.startswith("panic!"): ended = "FAILED"
            found = re.match(r"assert_eq!\\((.*), (.*?)\\);", line)
            try:
                if found and value(found[1], functions) != value(found[2], functions): ended = "FAILED"
            except IndexError: ended = "FAILED"
        if "#[should_panic" in marks: ended = "ok" if ended == "FAILED" else "FAILED"
        panics = " - should panic" if "#[should_panic" in marks else ""
        counts[ended] += 1
        print(f"test {test}{panics} ... {ended}")
    red = counts["FAILED"] > 0
    print(f"\\ntest result: {'FAILED' if red else 'ok'}. {counts['ok']} passed; {counts['FAILED']} failed; "
          f"{counts['ignored']} ignored; 0 measured; 0 filtered out; finished in 0.00s\\n")
    is_red |= red
sys.exit(101 if is_red else 0)
"""


def put_on_path(name: str, box: Sandbox, tmp_path: Path) -> None:
    """This toolchain first on the PATH of everything that runs in the repository."""
    place = tmp_path / "bin"
    place.mkdir()
    program = place / name
    program.write_text(
        (_COMMON + {"go": _GO, "cargo": _CARGO}[name]).replace("PYTHON", sys.executable)
    )
    program.chmod(0o755)
    box.env["PATH"] = f"{place}{os.pathsep}{os.environ['PATH']}"
