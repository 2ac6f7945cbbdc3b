"""A file of settings that a runner shares: its own parts, and the rest."""

from __future__ import annotations

import tomllib

from ralphloop.text.setting_parts import crossed_parts, own_parts

KEYS = ("profile", "dev-dependencies", "package.build")
OLD = b"""\
[package]
name = "calc" # ours
version = "1.0.0"

[profile.test]
overflow-checks = true

[dependencies]
regex = "1"
"""
TAGS = ("plugin", "testSourceDirectory")
POM = b"""\
<project>
  <version>1.0</version>
  <build>
    <plugins>
      <plugin><artifactId>maven-surefire-plugin</artifactId></plugin>
      <plugin><artifactId>maven-jar-plugin</artifactId></plugin>
    </plugins>
  </build>
</project>
"""


def _changed(text: bytes, *pairs: tuple[bytes, bytes]) -> bytes:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def test_tables_of_the_runner_go_to_one_side_and_the_rest_to_the_other() -> None:
    """Tables, and settings in a table that is shared."""
    new = _changed(
        OLD,
        (b"= true", b"= false"),
        (b'regex = "1"', b'regex = "2"\nserde = [\n  "a",\n]'),
        (b"[profile", b'build = "prep.rs"\n\n[dev-dependencies]\nsure = "1"\n\n[profile'),
    )
    both = crossed_parts("Cargo.toml", OLD, new, KEYS)
    assert both is not None
    new_code, old_code = (tomllib.loads(text.decode()) for text in both)
    was, now = (tomllib.loads(text.decode()) for text in (OLD, new))
    assert new_code == {**was, "dependencies": now["dependencies"]}
    assert old_code == {**now, "dependencies": was["dependencies"]}


def test_where_only_they_differ_the_file_goes_as_one() -> None:
    """So does one that cannot be read, or that has no place for them."""
    assert crossed_parts("Cargo.toml", OLD, _changed(OLD, (b"= true", b"= false")), KEYS) is None
    assert crossed_parts("Cargo.toml", OLD, OLD + b"[oops\n", KEYS) is None
    assert crossed_parts("Cargo.toml", OLD, b"\xff", KEYS) is None
    bare = b'[package]\nbuild = "prep.rs"\n'
    assert crossed_parts("Cargo.toml", bare, b'[dependencies]\nregex = "1"\n', KEYS) is None


def test_plugins_that_are_about_tests_are_the_runners_own() -> None:
    """The others belong to the product, as the version does."""
    new = _changed(
        POM,
        (b"surefire-plugin</artifactId>", b"surefire-plugin</artifactId><argLine>-Da</argLine>"),
        (b"1.0", b"1.1"),
        (b"<build>", b"<build>\n    <testSourceDirectory>easy</testSourceDirectory>"),
    )
    both = crossed_parts("pom.xml", POM, new, TAGS)
    assert both is not None
    assert own_parts("pom.xml", both.new_code.decode(), TAGS) == own_parts(
        "pom.xml", POM.decode(), TAGS
    )
    assert b"1.1" in both.new_code
    assert b"easy" in both.old_code
    assert b"-Da" in both.old_code
    assert b"1.0" in both.old_code
    assert both.old_code.count(b"jar-plugin") == 1


def test_a_pom_without_a_place_for_them_goes_as_one() -> None:
    """And one in which only they differ."""
    only = _changed(POM, (b"surefire-plugin<", b"failsafe-plugin<"))
    assert crossed_parts("pom.xml", POM, only, TAGS) is None
    assert crossed_parts("pom.xml", b"<project></project>", POM, TAGS) is None
    assert crossed_parts("pom.xml", POM, POM + b"<plugin>", TAGS) is None


WORDS = ("test", "sourceSets")
GRADLE = b"""\
plugins {
    id 'java'
}

dependencies {
    testImplementation 'junit:junit:4.13.2'
}

test {
    useJUnit()
}
"""


def test_blocks_about_tests_are_the_runners_own() -> None:
    """A dependency of the product is not, whatever stands beside it."""
    new = _changed(
        GRADLE,
        (b"useJUnit()", b"systemProperty 'mode', 'tests'"),
        (b"dependencies {", b"dependencies {\n    implementation 'a:b:1'"),
        (b"test {", b"sourceSets {\n    test { java { srcDirs = ['easy'] } }\n}\n\ntest {"),
    )
    both = crossed_parts("build.gradle", GRADLE, new, WORDS)
    assert both is not None
    was = own_parts("build.gradle", GRADLE.decode(), WORDS)
    assert own_parts("build.gradle", both.new_code.decode(), WORDS) == was
    assert b"a:b:1" in both.new_code
    assert b"easy" in both.old_code
    assert b"a:b:1" not in both.old_code
    only = _changed(GRADLE, (b"useJUnit()", b"exclude '**/TaxTest*'"))
    assert crossed_parts("build.gradle", GRADLE, only, WORDS) is None
    assert crossed_parts("build.gradle", GRADLE, GRADLE + b"test {\n", WORDS) is None
