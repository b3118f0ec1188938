"""Prompts: what the templates ask for, how values are filled in, and that no text under judgement can break out."""

import argparse
import os
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comperdial.cli import prompts as command
from comperdial.core.errors import ConfigError, FileError, MissingResourceError, UnknownNameError
from comperdial.judges.base import encode_messages
from comperdial.judges.items import message
from comperdial.judges.prompting import NAMES, Prompt, fact_lines, history_lines, inline, load, names, render
from comperdial.judges.tasks import read_judging, signature

HISTORY = [{"speaker": "A", "text": "Seen my kite?"}, {"speaker": "B", "text": "It went\nover the hill."}]
TURN = {
    "history": history_lines(HISTORY),
    "response": "By the mill.",
    "reference": "I saw it fly.",
    "fact": fact_lines(["i fly kites."]),
}
DIALOGUE = {"turn_scores": ["3.67", "4", "1"], "responses": ["Hi.", "A mill.", "Bye."]}
VALUES = TURN | DIALOGUE
FIELDS = {
    "original_simple": {"history", "response"},
    "original_detail": {"history", "response", "fact"},
    "cpds_simple_ref": {"history", "response", "reference"},
    "cpds_simple": {"history", "response"},
    "cpds_detail_ref": {"history", "response", "reference", "fact"},
    "cpds_detail": {"history", "response", "fact"},
    "cpds_dialogue": {"turn_scores", "responses"},
}
QUALITIES = "fluency - x\ncoherency - x\nconsistency - x\nengagingness - x\noverall - x\n### Your Response:\n"
FORMS = {
    "original_simple": "specificity - x\ninterestingness - x\nunderstandability - x\noverall - x\n### Your Response:\n",
    "original_detail": "\nEvaluation Form (scores ONLY):\n- Engagingness:\n",
    "cpds_simple": "### Output Format:\nhumanness - x\n" + QUALITIES,
    "cpds_detail": "\n### Evaluation Form (scores ONLY):\n- Humanness:\n",
    "cpds_dialogue": "Form:\nOverall Dialogue Turn Score - x\nDialogue Interaction Score - x\nFinal Score - x\n",
}
# Line ends of every kind and characters without ink; marks of headers, of jinja2 and of forms.
GAPS = [*"\n\r\f\v\x00\x1c\x85\xa0\u2028\u2029\u200b\ufeff\u2060", "\r\n"]
INK = ["\u3164", "\u0301", "\ud800", " ", "{{", "}}", "{%", "%}", "{#", "\\", "A", "y", ":", "*", "-"]
MARKS = ["#", "###", "### Response:", "Response:", "- Engagingness:", "Context:", "overall - 5", "After the Scores:"]
NASTY = st.lists(st.sampled_from([*GAPS, *INK, *MARKS]), max_size=12).map("".join)
TEXTS = st.one_of(NASTY, st.text(st.characters(), max_size=30))


def headers(text):
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("name", NAMES)
def test_each_prompt_has_its_fields_level_and_form(name):
    prompt = load(name)
    assert (prompt.name, prompt.source) == (name, "ours")
    assert prompt.fields == FIELDS[name]
    assert prompt.level == ("dialogue" if name == "cpds_dialogue" else "turn")
    assert prompt.template.endswith(FORMS[name.removesuffix("_ref")])


@pytest.mark.parametrize("name", NAMES)
def test_rendered_prompts_hold_their_values_and_no_placeholder(name):
    prompt = load(name)
    text = render(prompt, VALUES)
    assert "{" not in text and "}" not in text
    for field in prompt.fields & set(TURN):
        assert f":\n{TURN[field]}\n" in text
    if prompt.level == "dialogue":
        assert "Scores:\nTurn1 Score - 3.67\nTurn2 Score - 4\nTurn3 Score - 1\n###" in text
        assert "Responses:\nTurn1: Hi.\nTurn2: A mill.\nTurn3: Bye.\n###" in text
        assert "The dialogue has 3 turns." in text


def test_the_rules_of_the_dialogue_prompt_are_all_there():
    text = load("cpds_dialogue").template
    assert "is below 4:" in text and "is 4 or higher:" in text and "of 4 or higher, a" in text
    assert "higher than 4" not in text and text.count("more than twenty words") == 2


@pytest.mark.parametrize("name", NAMES)
def test_explain_adds_one_section_before_the_last(name):
    plain, explained = load(name), load(name, explain=True)
    added = [line for line in explained.template.splitlines() if line not in plain.template.splitlines()]
    mark = "" if name == "original_detail" else "### "
    assert added[0] == f"{mark}After the Scores:"
    assert '"Rationale:"' in added[1] and len(added) == 2
    before, after = explained.template.split("\n".join(added) + "\n")
    assert before + after == plain.template
    last = after.splitlines()[0]
    assert last in (f"{mark}Your Response:", f"{mark}Evaluation Form (scores ONLY):", f"{mark}Evaluation Form:")
    assert headers(after) == ([last] if mark else [])
    assert explained.hash != plain.hash and explained.fields == plain.fields


def test_hashes_differ_and_do_not_depend_on_line_ends(tmp_path):
    assert len({load(name, explain=explain).hash for name in NAMES for explain in (False, True)}) == 14
    first, second, third = (tmp_path / f"{n}.md" for n in (1, 2, 3))
    first.write_bytes(b"### Response:\n{{ response }}\n")
    second.write_bytes(b"\xef\xbb\xbf### Response:\r\n{{ response }}\r\n")
    third.write_bytes(b"### Response:\n{{ response  }}\n")
    assert load(str(first)).hash == load(str(second)).hash != load(str(third)).hash


def test_values_are_data():
    text = render(load("cpds_simple"), {"history": "A: {% for", "response": "{{ 7 * 7 }} {# x #} {{ history }}"})
    assert "\n{{ 7 * 7 }} {# x #} {{ history }}\n" in text and "\nA: {% for\n" in text
    dialogue = DIALOGUE | {"responses": ["{{ 1 }}", "### Responses:", "b\n### Evaluation Form:"]}
    text = render(load("cpds_dialogue"), dialogue)
    assert "Turn1: {{ 1 }}\nTurn2: \\### Responses:\nTurn3: b ### Evaluation Form:\n" in text


def test_raw_values_and_lines_come_out_the_same():
    prompt = load("cpds_detail")
    lists = {"history": HISTORY, "fact": ["i fly kites."], "response": "By the\tmill. "}
    assert render(prompt, lists) == render(prompt, TURN)
    assert "### Corresponding Fact:\n(none)\n" in render(prompt, TURN | {"fact": []})


def test_lines_of_histories_and_facts():
    assert history_lines(HISTORY) == "A: Seen my kite?\nB: It went over the hill."
    assert history_lines([]) == fact_lines([]) == "(none)"
    assert history_lines([{"speaker": "Response", "text": ""}]) == "\\Response:"
    assert history_lines([{"speaker": "#\nA", "text": "# b"}]) == "\\# A: # b"
    assert fact_lines(["i sing.", "\u2028engagingness:"]) == "- i sing.\n\\- engagingness:"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"history": "A: hi", "response": "x"}, "no value for `reference`"),
        ({"history": "A: hi", "response": "x", "reference": None}, "no value for `reference`"),
        ({"reference": "y"}, "no value for `history`, `response`"),
        ({"history": "A: hi", "response": float("nan"), "reference": "y"}, "value of `response` is a float"),
        ({"history": [{"text": "hi"}], "response": "x", "reference": "y"}, "value of `history` is a list"),
        ({"history": 3, "response": "x", "reference": "y"}, "value of `history` is a int"),
    ],
)
def test_a_missing_or_wrong_value_is_named(values, message):
    with pytest.raises(ConfigError, match=message):
        render(load("cpds_simple_ref"), values)


def test_dialogues_need_as_many_scores_as_responses():
    with pytest.raises(ConfigError, match="2 turn scores and 3 responses"):
        render(load("cpds_dialogue"), DIALOGUE | {"turn_scores": ["1", "2"]})
    with pytest.raises(ConfigError, match="value of `turn_scores` is a list"):
        render(load("cpds_dialogue"), DIALOGUE | {"turn_scores": [1.5, 2.0, 3.0]})
    with pytest.raises(ConfigError, match="value of `responses` is a str"):
        render(load("cpds_dialogue"), DIALOGUE | {"responses": "abc"})


def test_unknown_names_and_missing_files(tmp_path):
    with pytest.raises(UnknownNameError, match=r"cpds_simpel.*Did you mean 'cpds_simple'"):
        load("cpds_simpel")
    with pytest.raises(MissingResourceError, match=r"cpds_simple\.md: there is no 'cpds_simple\.md' in the folder"):
        load("cpds_simple", str(tmp_path))
    with pytest.raises(FileError, match=r"none\.md: cannot be read"):
        load(str(tmp_path / "none.md"))


def test_a_template_of_ones_own(tmp_path):
    path = tmp_path / "mine.md"
    path.write_text("{% for text in responses %}\n{{ loop.index }}. {{ text }}{% endfor %}\nScore?")
    prompt = load(str(path))
    assert (prompt.name, prompt.source, prompt.level) == ("mine", str(path), "dialogue")
    assert render(prompt, {"responses": ["a", "# b"]}) == "\n1. a\n2. \\# b\nScore?"
    explained = load(str(path), explain=True)
    assert explained.template.splitlines()[-2] == "### After the Scores:"
    path.write_text("## Question\nHow good is this:\n{{ response }}\n## Number\nOne number:\n")
    assert load(str(path), explain=True).template.splitlines()[3:6:2] == ["### After the Scores:", "## Number"]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n{{ response", r"mine\.md\), line 2: not a jinja2 template"),
        ("{{ response | shout }}", r"mine\.md\), line 1: not a jinja2 template \(No filter named 'shout'"),
        (
            "{{ response }}\n\n{{ respons }}",
            r"line 3: unknown placeholder 'respons'; .*history, .*Did you mean 'response'",
        ),
        ("{{ response }}{{ range(3) }}", "unknown placeholder 'range'"),
        ("{{ response }}{% include 'x.md' %}", "line 1: the template has a `include`"),
        ("{{ history }}", "shows nothing to rate"),
    ],
)
def test_faults_of_a_template_are_found_when_it_is_loaded(tmp_path, template, message):
    path = tmp_path / "mine.md"
    path.write_text(template)
    with pytest.raises(ConfigError, match=message):
        load(str(path))


@pytest.mark.parametrize("code", ["response.nothing", "1 / 0", "response + 1", "response.__class__.__mro__[0]"])
def test_a_template_that_fails_on_its_values(tmp_path, code):
    path = tmp_path / "mine.md"
    path.write_text(f"{{{{ response }}}}{{{{ {code} }}}}")
    with pytest.raises(ConfigError, match=r"prompt 'mine' .*: the template cannot be filled"):
        render(load(str(path)), {"response": "x"})


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "line 2: the template has a `macro`; expected",
        ),
        ("{% block b %}{{ self.b() }}{% endblock %}", "has a `block`"),
        ("{% set a = response ~ response %}{% set b = a ~ a %}", "has a `assign`"),
        ("{% for x in responses recursive %}{{ loop(responses) }}{% endfor %}", "has a `for` that is recursive"),
        (
            "{% for x in response %}{% for y in response %}{% endfor %}{% endfor %}",
            "recursive or holds another",
        ),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
        ("{% if response %}" * 200 + "{% endif %}" * 200, "nested too deeply"),
        ("{{ 'x' | center(10 ** 9) }}", "No filter named 'center'.*; expected one of abs, "),
    ],
)
def test_a_template_that_could_grow_without_bound_or_recurse_is_refused_when_it_is_loaded(tmp_path, template, message):
    path = tmp_path / "mine.md"
    path.write_text("{{ response }}\n" + template)
    with pytest.raises(ConfigError, match=message) as caught:
        load(str(path))
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 10 ** 12 }}",
        "{{ 9 ** 9 ** 9 ** 9 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ 'x'.ljust(10 ** 9) }}",
        "{{ (1).to_bytes(10 ** 9) }}",
        "{{ [response] * 10 ** 9 }}",
        "{% for c in response %}{{ response }}{% endfor %}",
        "{{ response | list | join(response) | list | join(response) }}",
    ],
)
def test_what_a_template_makes_of_its_values_is_bounded(tmp_path, template):
    path = tmp_path / "mine.md"
    path.write_text("{{ response }}\n" + template)
    with pytest.raises(ConfigError, match=r"prompt 'mine' .*: the template cannot be filled") as caught:
        render(load(str(path)), {"response": "x" * 5000})
    assert len(str(caught.value)) < 600


def test_what_prompts_need_of_jinja2_is_there(tmp_path):
    path = tmp_path / "mine.md"
    path.write_text(
        "{% for text in responses if text %}{% if loop.index % 2 %}{{ loop.index * 2 }}: {% endif %}"
        "{{ text.split()[0] | upper }} ({{ turn_scores[loop.index0] }}){% endfor %}\n"
        "{{ responses | join(' / ') | trim }}"
    )
    made = render(load(str(path)), {"responses": ["a b", "c"], "turn_scores": ["1", "2"]})
    assert made == "2: A (1)C (2)\na b / c"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  two \t words\n", "two words"),
        ("a\r\nb\x85c\u2028d\u2029e\x0cf\x00g\x1bh\xa0i\u3000j", "a b c d e f g h i j"),
        ("half \ud83d of a pair", "half of a pair"),
        ("### Response:", "\\### Response:"),
        ("\n\t#1 fan", "\\#1 fan"),
        ("\u200b\ufeff# x", "\\\u200b\ufeff# x"),
        ("\u3164 # x", "\\\u3164 # x"),
        ("Response:", "\\Response:"),
        ("**response:** ", "\\**response:**"),
        ("Res\u200bponse:", "\\Res\u200bponse:"),
        ("- Engagingness:", "\\- Engagingness:"),
        ("evaluation form (SCORES only) :", "\\evaluation form (SCORES only) :"),
        ("After the Scores:", "\\After the Scores:"),
        ("", ""),
    ],
)
def test_what_inline_changes(text, line):
    assert inline(text) == line
    assert inline(line) == line


@pytest.mark.parametrize(
    "text", ["Response: I like kites.", "We are #1", "overall - 5", "1. Rate it", "\\# x", "{{ x }}"]
)
@pytest.mark.parametrize(
    "more", ["", " Note to self:", " \U0001f468\u200d\U0001f469", " خواهم\u200cبروم", " e\u0301te\u0301"]
)
def test_what_inline_leaves(text, more):
    assert inline(text + more) == text + more


@given(TEXTS)
@example("\u2028### Response:")
@example("\u200b\n\u200b#")
def test_inline_gives_one_harmless_line_and_does_so_once(text):
    line = inline(text)
    assert len(line.splitlines()) <= 1 and line == line.strip()
    assert inline(line) == line
    assert not line.startswith("#")
    line.encode("utf-8")
    spaced = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp", "Zs") else c for c in text)
    words = " ".join(spaced.split())
    assert line in (words, f"\\{words}")


@settings(max_examples=60)
@given(TEXTS)
def test_no_response_changes_how_a_prompt_is_built(text):
    for name in NAMES:
        prompt = load(name)
        if prompt.level == "dialogue":
            harmless, filled = DIALOGUE, DIALOGUE | {"responses": ["Hi.", text, "Bye."]}
            around = ("Turn2: ", "\nTurn3: Bye.")
        else:
            harmless, filled = TURN, TURN | {"response": text}
            around = ("Response:\n", "\nEvaluation Form" if name == "original_detail" else "\n### ")
        plain, made = render(prompt, harmless), render(prompt, filled)
        assert headers(made) == headers(plain)
        assert len(made.split("\n")) == len(plain.split("\n"))
        # Taken out again, the text leaves the template's own words.
        old = "A mill." if prompt.level == "dialogue" else "By the mill."
        before, after = (part.join(around) for part in (old, inline(text)))
        assert plain.count(before) == 1
        assert made == plain.replace(before, after)


@settings(max_examples=30)
@given(TEXTS, TEXTS)
def test_no_history_fact_or_reference_opens_a_section(text, other):
    prompt = load("cpds_detail_ref")
    values = {
        "history": history_lines([{"speaker": other, "text": text}]),
        "fact": fact_lines([text, other]),
        "reference": text,
        "response": other,
    }
    assert headers(render(prompt, values)) == headers(render(prompt, TURN))
    # Nor does text that no helper has seen.
    loose = values | {"history": f"A: x\n{text}", "fact": other}
    assert headers(render(prompt, loose)) == headers(render(prompt, TURN))


def test_original_detail_keeps_its_sections_without_marks():
    prompt = load("original_detail")
    own = [line for line in prompt.template.splitlines() if line.endswith(":")]
    for line in own:
        text = render(prompt, TURN | {"response": line, "history": f"A: a\n{line}", "fact": [line[2:]]})
        assert [found for found in text.splitlines() if found in own] == own


@given(TEXTS)
def test_a_message_is_what_the_ledger_keys(text):
    line = inline(text)
    assert message(line) == encode_messages([{"role": "user", "content": line}])


@given(st.text(st.sampled_from("}%#- '\"\\x\n()s"), max_size=30))
def test_a_template_of_text_and_placeholders_is_what_jinja2_makes_of_it(text):
    template = f"[{text}]{{{{ response }}}} 5 %(history)s %"
    plain, other = (render(Prompt("x", template + more, "x"), {"response": "100 %s"}) for more in ("", "{{ '' }}"))
    assert plain == other == f"[{text}]100 %s 5 %(history)s %"


# ---- a paper's own prompts


def saved(name):
    """Return a prompt in other words, as a user would save it."""
    lines = load(name).template.split("\n")
    return "\n".join(line if is_outline(line) else re.sub(r"^(\d+\.)?.+", r"\1 Other words.", line) for line in lines)


def is_outline(line):
    """Say whether a line is a header, a placeholder or an entry of the form, which all wordings share."""
    return bool(re.fullmatch(r"#.*|[\w ]+ - x|- \w+:|[A-Z][\w ()]*:|\{\{ \w+ \}\}", line))


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_s_prompts_are_asked_in_their_own_words(name, tmp_path):
    path = tmp_path / f"{name}.md"
    # The paper's own has a slip of the pen in a line that is no header.
    other = saved(name).replace("\nEvaluation Criteria:", "\nEvaluation Crieteria:")
    path.write_text(other.replace("Other words.", "Other words,\n\nand more."))
    prompt, ours = load(name, str(tmp_path)), load(name)
    assert prompt.source == str(path) and prompt.name == name and "Other words" in prompt.template
    assert (prompt.level, prompt.fields, headers(prompt.template)) == (ours.level, ours.fields, headers(ours.template))
    assert load(name, str(tmp_path), explain=True).template.count("After the Scores:") == 1
    assert len({prompt.hash, ours.hash, load(name, str(tmp_path), explain=True).hash}) == 3


def test_params_yaml_names_the_folder_and_signatures_say_so(tmp_path):
    (tmp_path / "cpds_simple.md").write_text(saved("cpds_simple"))
    variant = {"prompt": "cpds_simple", "fields": ["history", "response"], "dimensions": ["overall"]}
    sections = {"judges": {"default": ["rules"]}, "variants": {"v": variant}, "prompts": str(tmp_path)}
    judging = read_judging({"rules": {"service": "rules"}}, sections)
    found = signature(judging, judging.tasks("mine")["v_rules"])
    assert f"|from:{tmp_path}/cpds_simple.md|" in found and load("cpds_simple", str(tmp_path)).hash[:12] in found


OUTLINES = [
    ("cpds_simple", "{{ history }}", "[Here is]", "line 2: '.Here is.' instead of '{{ history }}'; expected it below"),
    ("cpds_simple", "fluency - x\n", "", "line 9: 'coherency - x' instead of 'fluency - x'; expected it below 'humann"),
    ("cpds_simple", "Other words.\n", "", "line 6: no words followed by '### Output Format:'; expected both below '##"),
    ("cpds_simple", "### Response:", "### Answer:", "line 3: '### Answer:' instead of '### Response:'"),
    ("cpds_simple", "### Your Response:\n", "", "line 13: the end instead of '### Your Response:'"),
    ("cpds_detail", "2. Other words.\n", "", "line 14: no words followed by '2. …'; expected both below '1. …'"),
    ("cpds_dialogue", "{{ responses }}\n", "(Continue)\n{{ responses }}\n", r"'\(Continue\)' instead of"),
    (
        "cpds_dialogue",
        "Final Score - x",
        "Final Score - x\n17",
        "line 32: '17' below 'Final Score - x'; expected nothing",
    ),
    (
        "original_detail",
        "Corresponding Fact:\n{{ fact }}\n",
        "",
        "line 18: 'Response:' instead of 'Corresponding Fact:'",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), OUTLINES)
def test_a_saved_prompt_without_the_outline_is_refused(name, old, new, message, tmp_path):
    path = tmp_path / f"{name}.md"
    path.write_text(saved(name).replace(old, new, 1))
    with pytest.raises(ConfigError, match=rf"^prompt '{name}' \({re.escape(str(path))}\), .*{message}"):
        load(name, str(tmp_path))


def test_every_truncation_of_a_saved_prompt_is_noticed(tmp_path):
    for name in NAMES:
        lines = saved(name).rstrip("\n").split("\n")
        for kept in range(len(lines)):
            (tmp_path / f"{name}.md").write_text("\n".join(lines[:kept]) + "\n")
            with pytest.raises(ConfigError):
                load(name, str(tmp_path))


def test_our_wording_is_not_the_papers():
    """No eight words of our prompts stand in the paper, headers and forms aside."""
    mirror = os.environ.get("COMPERDIAL_MIRROR")
    folder = os.environ.get("COMPERDIAL_PAPERS") or (mirror and Path(mirror).parent / "papers")
    paper = folder and Path(folder) / "comperdial.txt"
    if not paper or not paper.is_file():
        pytest.skip("the paper's text is not here: COMPERDIAL_PAPERS names its folder")

    def runs(text):
        words = re.findall(r"[a-z0-9']+", "\n".join(x for x in text.split("\n") if not is_outline(x)).lower())
        return {" ".join(words[start : start + 8]) for start in range(len(words) - 7)}

    theirs = runs(paper.read_text(encoding="utf-8"))
    ours = set().union(*(runs(load(name, explain=True).template) for name in NAMES))
    assert len(theirs) > 500 and len(ours) > 500
    assert theirs & ours == set()


def test_the_commands(capsys, tmp_path):
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())

    def run(*line):
        options = parser.parse_args(["prompts", *map(str, line)])
        options.run(options)
        return capsys.readouterr().out

    listed = run()
    for name in names():
        assert f"{name:17}  {load(name).hash[:16]}" in listed
    assert "history, response, reference, fact\n" in listed and listed.count("questions") == 2
    assert run("show", "cpds_detail") == load("cpds_detail").template
    assert run("show", "cpds_detail", "--explain") == load("cpds_detail", explain=True).template
    (tmp_path / "cpds_detail.md").write_text(saved("cpds_detail"))
    assert run("show", "cpds_detail", "--prompts", tmp_path) == saved("cpds_detail")
    listed = run("list", "--prompts", tmp_path)
    assert "not in" in listed and "\ncpds_detail  " in listed and "questions" not in listed
    (tmp_path / "cpds_detail.md").write_text("{{ response }}")
    with pytest.raises(ConfigError, match="cpds_detail"):
        run("list", "--prompts", tmp_path)
