"""YAML files that are wrong in ways that PyYAML lets pass, or fails on without saying where."""

import pytest

from comperdial.catalogue import load_catalogue, read_lock
from comperdial.challenge.roster import read_roster
from comperdial.config import load_yaml
from comperdial.errors import ComperdialError, FileError
from comperdial.judges.prices import Prices
from comperdial.raters import read_raters


@pytest.mark.parametrize("read", [load_yaml, load_catalogue, read_lock, read_roster, read_raters, Prices.read])
def test_a_key_that_is_given_twice_is_refused_by_name_and_line(tmp_path, read):
    path = tmp_path / "file.yaml"
    path.write_text("gpt-4:\n- {from: 2024-01-01, input: 10,\n   output: 30, source: s, input: 0}\n")
    with pytest.raises(FileError, match=r"file\.yaml, line 3: .*the key 'input' is given twice"):
        read(path)


def test_merged_keys_may_be_given_again(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: [*b, *a], y: 4}\n")
    assert load_yaml(path)["c"] == {"x": 3, "y": 4}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n  b: 1\n c: 2\n", 3, "not valid YAML"),
        ("a: 1\nb: {from: 2024-02-30}\n", 2, "'2024-02-30' is no date"),
        ("a: 1\nb: " + "9" * 5000, 2, "is no whole number"),
        ("a: 1\nb: x\0y\n", 2, r"the character U\+0000"),
        ("a: 1\nb: !!bool maybe\n", 2, "'maybe' is no bool"),
        ("a: 1\nb: !!timestamp soon\n", 2, "'soon' is no date"),
        ("a: 1\nb: !!python/name:os.system x\n", 2, "the tag"),
        ("a: 1\nb: !!set {x, y}\n", 2, "the tag"),
        ("a: 1\nb: .nan\n", 2, "not a number"),
        ('a: 1\nb: "\\ud800"\n', 2, r"the character U\+D800"),
        ('a: 1\nb: "x\\0y"\n', 2, r"the character U\+0000"),
        ("a: 1\nnull: 2\n", 2, "the key 'null' is no text: put it in quotes"),
        ("a: 1\n.nan: 2\n", 2, r"the key '\.nan' is no text"),
        ("a: 1\nlabels: {Yes: 1, No: 0}\n", 2, "the key 'Yes' is no text"),
        ("a: 1\n? [b]\n: 2\n", 2, "is no text"),
        ("a: 1\nb: &b [*b]\n", 2, "contains itself"),
        ("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
         + "".join(f"{x}: &{x} [{', '.join([f'*{chr(ord(x) - 1)}'] * 10)}]\n" for x in "bcdefgh"), 1, "aliases"),
    ],
)  # fmt: skip
def test_the_line_of_what_cannot_be_read_is_named(tmp_path, text, line, message):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match=rf"file\.yaml, line {line}: .*{message}"):
        load_yaml(path)


@pytest.mark.parametrize("text", ["a: " + "[" * 5000, 'a: "\\UFFFFFFFF"'])
def test_what_breaks_the_parser_is_one_message(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match=r"file\.yaml.*not valid YAML"):
        load_yaml(path)


def test_messages_are_short_and_control_no_terminal():
    error = ComperdialError("it is " + "x" * 10_000, where="a\x1b[31m\n\u202efile", hint="Paste:\na: 1\x07")
    said = str(error)
    assert len(said) < 700
    assert said.startswith(r"a\x1b[31m\n\u202efile: it is xxx")
    assert said.endswith("Paste:\na: 1\\x07")
    assert error.problem == "it is " + "x" * 10_000
