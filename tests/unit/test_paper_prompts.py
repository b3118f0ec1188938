"""Taking the paper's prompts from its text and HTML: on an invented paper, and on the real one where it lies."""

import hashlib
import html
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comperdial.cli import prompts as command
from comperdial.core.errors import FileError
from comperdial.judges import prompting
from comperdial.judges._markup import to_text
from comperdial.judges.paper_prompts import SECTIONS, escape, extract, import_paper, read_paper
from comperdial.judges.prompting import NAMES, load, render

TURNS = (
    "Turn1 Score - [score1 ]\nTurn2 Score - [score2 ]\n:\nTurn7 Score - [score7 ]",
    "Turn1: [turn1 ]\n:\nTurn7: [turn7 ]",
)
IN_PAPER = {
    "{{ history }}": "[Here is history information ]",
    "{{ response }}": "[Here is response information ]",
    "{{ reference }}": "[Here is reference response information ]",
    "{{ fact }}": "[Here is fact information ]",
    "{{ turn_scores }}": TURNS[0],
    "### Responses:\n{{ responses }}": f"(Continue next page)\n### Responses:\n{TURNS[1]}",
}
# A brace and quotes, so that what jinja2 and HTML read as their own is there.
OURS = {name: load(name).template.replace("{{ responses | length }}", 'some <& "{{few}}"') for name in NAMES}
WANTED = {name: text.replace("{{few}}", "{{ '{' }}{{ '{' }}few}}") for name, text in OURS.items()}
VALUES = {
    "history": [{"speaker": "A", "text": "Seen my kite?"}],
    "response": "By the {{ mill }}.",
    "reference": "# It flew.",
    "fact": ["i fly kites."],
    "turn_scores": [str(number) for number in range(1, 8)],
    "responses": [f"text {number}" for number in range(1, 8)],
}


def body(name):
    text = OURS[name]
    for ours, theirs in IN_PAPER.items():
        text = text.replace(ours, theirs)
    return text.strip()


def sections():
    """Return headings with what stands below; those of no prompt have None."""
    found = [("Appendix B Scores", None), ("B.1 Simple prompt", None)]
    for name in NAMES_IN_ORDER:
        if name == "original_detail":
            found.append(("B.2 Detailed prompt", None))
        found.append((str(SECTIONS[name]), body(name)))
    return [*found, ("Appendix C More", None), ("C.1 Words", None)]


NAMES_IN_ORDER = sorted(NAMES, key=lambda name: SECTIONS[name].number)


def as_text():
    parts = ["An invented paper. See Appendix B.", *(heading for heading, _ in sections())]
    for heading, text in sections():
        parts += [heading, text or "Some words."]
    return "\n".join(parts) + "\n"


def page(prompt, heading=lambda text: f"<h3>{text}</h3>"):
    """Return the invented paper as HTML, with prompts as ``prompt`` makes them of their text."""
    contents = "".join(f"<li><a href='#s'>{heading}</a></li>" for heading, _ in sections())
    main = "".join(
        heading(title) + (prompt(html.escape(text)) if text else "<p>Some words.</p>") for title, text in sections()
    )
    top = "<!DOCTYPE html><html><head><title>B.3 CPDScore-Dialogue</title><style>p {}</style></head><body>"
    return f"{top}<nav><ol>{contents}</ol></nav>{main}<footer><p>Made by hand.</p></footer></body></html>"


def tagged(title):
    """Return a heading as LaTeXML makes it."""
    number, _, rest = title.rpartition(" ") if title.startswith("Appendix") else title.partition(" ")
    return f'<h4 class="ltx_title ltx_title_section">\n<span class="ltx_tag">{number}&nbsp;</span>{rest}\n</h4>'


def paragraphs(text):
    made = []
    for line in text.split("\n"):
        item = re.match(r"(\d\.|-) ?(?=\w)(.*)", line)
        if item:
            tag = "&#8226;" if item[1] == "-" else item[1]
            made.append(
                f'<ul class="ltx_itemize"><li class="ltx_item"><span class="ltx_tag ltx_tag_item">{tag}</span>\n'
                f'<div class="ltx_para">\n<p class="ltx_p">{item[2]}</p>\n</div></li></ul>'
            )
        else:
            line = line.replace(
                " - x", " <math><semantics><mo>-</mo><annotation>\\x</annotation></semantics></math> <i>x</i>"
            )
            made.append(f'<div class="ltx_para"><p class="ltx_p">{line.replace(" ", chr(10), 1)}</p></div>')
    return "\n".join(made)


def listing(text):
    lines = "".join(
        f'<div class="ltx_listingline"><span class="ltx_tag ltx_tag_listingline">{number}</span>{line}</div>'
        for number, line in enumerate(text.split("\n"))
    )
    return f'<div class="ltx_listing"><div class="ltx_listing_data"><a href="data:x">save<br></a></div>{lines}</div>'


def spans(text):
    lines = "".join(f'<span class="ltx_p">{line}</span>' for line in text.split("\n"))
    return f'<p><span class="ltx_inline-block"><span>{lines}</span><span class="ltx_note">7 a note</span></span></p>'


PAGES = {
    "paragraphs": page(paragraphs, tagged),
    "listing": page(listing, tagged),
    "framed": page(spans),
    "verbatim": page("<pre>{}</pre>".format),
    "cell": page(lambda text: f"<table><tr><td>{text.replace(chr(10), '<br/>')}</td></tr></table>"),
    "cells": page(lambda text: f"<table><tr><td>{text.replace(chr(10), '</td></tr><tr><td>')}</td></tr></table>"),
}


def papers():
    """Return the folder of papers: named, or beside the mirror."""
    if folder := os.environ.get("COMPERDIAL_PAPERS"):
        return Path(folder)
    mirror = os.environ.get("COMPERDIAL_MIRROR")
    return Path(mirror).parent / "papers" if mirror else None


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Return the folder of prompts imported from the real paper."""
    paper = papers() and papers() / "comperdial.txt"
    if not paper or not paper.is_file():
        pytest.skip("the paper's text is not here: COMPERDIAL_PAPERS names its folder")
    folder = tmp_path_factory.mktemp("paper")
    import_paper(paper, folder)
    return folder


def test_text_gives_all_seven_prompts():
    assert extract(as_text(), "paper") == WANTED


@pytest.mark.parametrize("kind", PAGES)
def test_html_gives_what_text_gives(kind, tmp_path):
    path = tmp_path / "paper.txt"
    path.write_text(PAGES[kind], encoding="utf-8")
    found = extract(read_paper(path), kind)
    for name in NAMES:
        assert found[name] == WANTED[name]


def test_lists_are_numbered_where_their_items_have_no_tags():
    html = "<ol><li><p>a</p><ul><li>b</li></ul></li><li>c<br>d</li></ol><p>e <b>f</b>g</p><p>h</p>"
    assert [line.strip() for line in to_text(html).split("\n") if line.strip()] == [
        "1. a",
        "- b",
        "2. c",
        "d",
        "e fg",
        "h",
    ]


def test_headings_in_other_forms():
    text = as_text()
    for name, section in SECTIONS.items():
        first, rest = str(section).split(" ", 1)
        form = f"  {first.replace('.', ' . ')}.\n\t{rest.upper().replace('-', chr(0x2010))}  "
        text = text.replace(f"{section}\n###", f"{form}\n###").replace(f"{section}\nTwo", f"{form}\nTwo")
        assert name in NAMES and form in text
    # Contents after the paper, with page numbers, and page numbers and white space in the prompts.
    contents = "\n".join(f"{section} . . . . {number}" for number, section in enumerate(SECTIONS.values()))
    text = text.replace("### Output Format:", "\n 17\n\n###\xa0Output   Format:\u200b") + contents
    assert extract(text, "paper") == WANTED


def test_wrapped_lines_do_not_hide_a_placeholder():
    text = as_text().replace("reference response information ]", "reference\n  response information\n]")
    assert extract(text, "paper") == WANTED


FAULTS = {
    "no section": (
        lambda t: t.replace("B.1.3 CPDScore-Simple without reference\n###", "###"),
        "no section B.1.3 CPDScore-S",
    ),
    "two of one": (
        lambda t: t[: t.rindex("B.2.3 CPD")],
        "no section B.2.3 CPDScore-Detail without reference, no section B.3 CPDScore-Dialogue",
    ),
    "no appendix": (lambda t: t[:200], "no section B.1.1"),
    "cut in the form": (lambda t: t[: t.rindex("Final Score - x")], "B.3 .*'Final Score - x' is missing"),
    "cut in the last line": (lambda t: t[: t.rindex(" x\nAppendix C")], "B.3 .*'Final Score - x' is missing"),
    "cut at the page": (
        lambda t: t[: t.rindex("### Responses:")],
        r"section B.3 CPDScore-Dialogue: the line '### Responses:' is missing; expected it after grade 5",
    ),
    "no last line": (
        lambda t: t.replace("overall - x\n### Your Response:\nB.1.2", "overall - x\nB.1.2"),
        r"B.1.1 .*: the line '### Your Response:' is missing; expected it after the line 'overall - x'",
    ),
    "no form line": (lambda t: t.replace("coherency - x\n", "", 1), "B.1.2.*'coherency - x' is missing"),
    "no placeholder": (
        lambda t: t.replace("[Here is fact information ]", "", 1),
        "B.2.1 Original detailed prompt: the place for `fact` is missing; .*'Corresponding Fact:'",
    ),
    "no turns": (lambda t: t.replace("[turn7 ]", ""), "placeholder '.turn1 .' is not known"),
    "other placeholder": (
        lambda t: t.replace("[Here is fact", "[Here is mood", 1),
        "'.Here is mood information .' is not",
    ),
    "cut placeholder": (lambda t: t.replace("history information ]", "history", 1), "'.Here is history' is not known"),
    "placeholder twice": (
        lambda t: t.replace("### Instruction:\n", "### Instruction:\n[Here is history information ]\n", 1),
        "B.1.1 .*the place for `history` stands twice",
    ),
    "no instruction": (
        lambda t: re.sub("### Instruction:\n.*\n", "### Instruction:\n", t, count=1),
        "B.1.1 .*a line of text is missing; expected it after the line '### Instruction:'",
    ),
    "no step": (
        lambda t: t.replace("\n2. By the", "\nBy the", 1),
        "B.2.1.*step 2 is missing; expected it after step 1",
    ),
    "no grade": (lambda t: t.replace("score 3:", "score:"), "B.3 .*grade 3 is missing"),
    "more after it": (
        lambda t: t.replace("- Humanness:\nB.2.3", "- Humanness:\nWords.\nB.2.3"),
        "B.2.2.*end: 'Words.'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_paper_is_refused_whole(fault, tmp_path):
    change, message = FAULTS[fault]
    path = tmp_path / "paper.txt"
    path.write_text(change(as_text()))
    assert path.read_text() != as_text()
    with pytest.raises(FileError, match=f"(?s)^{re.escape(str(path))}.*{message}"):
        import_paper(path, tmp_path / "prompts")
    assert not (tmp_path / "prompts").exists()


def test_every_truncation_is_noticed():
    text = as_text()
    end = text.rindex("Appendix C")
    for cut in range(text.rindex("B.1.1"), end - 1, 23):
        with pytest.raises(FileError):
            extract(text[:cut], "paper")
    assert extract(text[:end], "paper") == WANTED


def test_other_files_are_named(tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(b"%PDF-1.7\n\xff\xfe")
    with pytest.raises(FileError, match="a PDF; expected text or HTML"):
        import_paper(path, tmp_path / "prompts")
    with pytest.raises(FileError, match="cannot be read"):
        import_paper(tmp_path / "none.txt", tmp_path / "prompts")
    path.write_bytes(b"caf\xe9")
    with pytest.raises(FileError, match="is not UTF-8"):
        import_paper(path, tmp_path / "prompts")


def test_import_writes_templates_and_where_they_are_from(tmp_path, capsys):
    import argparse

    paper, folder = tmp_path / "paper.html", tmp_path / "prompts"
    paper.write_text(PAGES["paragraphs"])
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())
    for _ in range(2):
        options = parser.parse_args(["prompts", "import", str(paper), "--output", str(folder)])
        options.run(options)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*(f"{name}.md" for name in NAMES), "source.json"])
    prompts = {name: load(name, "paper", folder=folder) for name in NAMES}
    assert json.loads((folder / "source.json").read_text()) == {
        "file": "paper.html",
        "sha256": hashlib.sha256(paper.read_bytes()).hexdigest(),
        "prompts": {name: prompt.hash for name, prompt in prompts.items()},
    }
    assert f"cpds_detail.md  {prompts['cpds_detail'].hash[:16]}\n" in capsys.readouterr().out
    text = render(prompts["cpds_dialogue"], VALUES)
    assert 'some <& "{{few}}"' in text and "Turn7: text 7\n### Evaluation Form:" in text


@given(st.text(st.sampled_from("{}%#- '\"\\x\n"), max_size=30))
def test_escaped_text_renders_to_itself(text):
    around = "[" + text + "]"
    template = escape(around) + "{{ response }}"
    assert render(prompting.Prompt("x", template, "x"), {"response": "y"}) == around + "y"


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def is_form(line):
    """Say whether a line is a header or an entry of the form, which both wordings share."""
    return bool(re.fullmatch(r"#.*|[\w ]+ - x|- \w+:|[A-Z][\w ()]*:|\{\{ \w+ \}\}", line))


def runs(text, length):
    """Return the runs of words of a template, headers and form left out."""
    found = words("\n".join(line for line in text.split("\n") if not is_form(line)))
    return {tuple(found[start : start + length]) for start in range(len(found) - length + 1)}


def test_real_paper_all_seven_with_our_sections(real):
    for name in NAMES:
        prompt = load(name, "paper", folder=real)
        assert prompt.fields == load(name).fields and prompt.level == load(name).level
        lines = prompt.template.rstrip("\n").split("\n")
        ours = load(name).template.rstrip("\n").split("\n")
        heads = [line for line in lines if line.startswith("#")]
        assert heads == [line for line in ours if line.startswith("#")]
        assert lines[-1] == ours[-1]
        assert "[" not in prompt.template and "Continue" not in prompt.template


def test_real_paper_every_word_of_the_appendix_is_in_a_prompt(real):
    text = (papers() / "comperdial.txt").read_text(encoding="utf-8")
    start = re.search(r"^B\.1\.1 .*$", text, re.MULTILINE).end()
    appendix = text[start : re.compile("^Appendix C", re.MULTILINE).search(text, start).start()]
    appendix = re.sub(r"(?m)^B\.\d.*$|^\(Continue next page\)$", "", appendix)
    imported = "\n".join(load(name, "paper", folder=real).template for name in NAMES_IN_ORDER)
    fields = {
        "history": "[Here is history information ]",
        "response": "[Here is response information ]",
        "reference": "[Here is reference response information ]",
        "fact": "[Here is fact information ]",
        "turn_scores": TURNS[0],
        "responses": "Turn1: [turn1 ]\nTurn2: [turn2 ]\n:\nTurn7: [turn7 ]",
    }
    for field, placeholder in fields.items():
        imported = imported.replace(f"{{{{ {field} }}}}", placeholder)
    assert imported.split() == appendix.split()


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_real_paper_renders_with_the_values_of_ours(real, name, explain):
    theirs = render(load(name, "paper", folder=real, explain=explain), VALUES)
    ours = render(load(name, explain=explain), VALUES)
    shown = {field: ours.count(text) for field, text in shown_values().items()}
    assert {field: theirs.count(text) for field, text in shown_values().items()} == shown
    assert {field for field, count in shown.items() if count} == load(name).fields
    assert theirs.count("After the Scores:") == explain


def shown_values():
    return {
        "history": "\nA: Seen my kite?\n",
        "response": "\nBy the {{ mill }}.\n",
        "reference": "\n\\# It flew.\n",
        "fact": "\n- i fly kites.\n",
        "turn_scores": "\n".join(f"Turn{number} Score - {number}" for number in range(1, 8)),
        "responses": "\n".join(f"Turn{number}: text {number}" for number in range(1, 8)),
    }


def test_our_wording_is_not_the_papers(real):
    theirs = set().union(*(runs(load(name, "paper", folder=real).template, 8) for name in NAMES))
    ours = set().union(*(runs(load(name, explain=True).template, 8) for name in NAMES))
    assert len(theirs) > 500 and len(ours) > 500
    assert {" ".join(run) for run in theirs & ours} == set()
