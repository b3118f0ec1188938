"""An annotator's page, driven in Chromium by its keys."""

import json
import shutil
import time

import pytest

from chromium import CHROMIUM, Chromium
from comperdial.challenge.pairs.collection import write_collection
from comperdial.challenge.pairs.design import make_design
from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.challenge.pairs.importing import read_votes
from comperdial.challenge.pairs.page import page_data
from comperdial.challenge.pairs.questions import chosen, read_questions
from comperdial.challenge.pairs.reading import Material

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")

EVIL = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> & <b>“ok”</b> $style"


@pytest.fixture
def study(tmp_path):
    """Two annotators of four pairs each, with ties."""
    dialogues = [
        Dialogue(f"{system}-{n}", system, "B", (("A", f"hello {n}"), ("B", EVIL), ("A", "bye"), ("B", f"{system} {n}")))
        for system in ("zebra", "quokka")
        for n in range(8)
    ]
    material = Material({dialogue.key: dialogue for dialogue in dialogues})
    design = make_design(material, chosen(read_questions(), ["overall"]), annotators=2, pairs_each=4, seed=3)
    write_collection(tmp_path / "study", design, name="mini", ties=True, seed=3)
    return tmp_path / "study"


@pytest.fixture
def open_page(study, tmp_path):
    browsers = []

    def opened(name="a01", profile="profile"):
        browsers.append(Chromium(tmp_path / profile, (study / "pages" / f"{name}.html").as_uri()))
        return browsers[-1]

    yield opened
    for browser in browsers:
        browser.kill()


def count(browser):
    return browser.evaluate("document.getElementById('count').textContent")


def vote(browser, key, reason=""):
    before = count(browser)
    browser.press(key)
    if reason:
        browser.type(reason)
    browser.press("Enter")
    browser.wait(f"document.getElementById('count').textContent !== {json.dumps(before)}")


def saved(browser, folder, name="a01.json"):
    folder.mkdir(exist_ok=True)
    browser.downloads_to(folder)
    browser.evaluate("document.getElementById('save').click()")
    deadline = time.monotonic() + 20
    while not (folder / name).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return folder / name


def test_texts_are_shown_as_text_and_the_judged_speaker_is_marked(open_page, study):
    browser = open_page()
    task = page_data((study / "pages/a01.html").read_text())["tasks"][0]
    for side, speaker in (("left", "Speaker 1"), ("right", "Speaker 2")):
        lines = browser.evaluate(
            f"[...document.querySelectorAll('#{side} .utterance')].map(l => [l.classList.contains('judged'), "
            "l.firstChild.textContent, l.lastChild.textContent])"
        )
        assert [(judged, text) for judged, _, text in lines] == [tuple(said) for said in task[side]]
        assert [who for _, who, _ in lines] == ["Partner", speaker, "Partner", speaker]
    assert browser.evaluate("document.title") == "Compare two speakers (a01)"
    assert browser.evaluate("document.images.length") == 0
    assert not browser.evaluate("performance.getEntriesByType('resource').length")


def test_a_killed_browser_loses_nothing(open_page, study, tmp_path):
    browser = open_page()
    vote(browser, "1", "kinder")
    vote(browser, "ArrowRight")
    browser.press("0")
    browser.type("half a rea")
    # What is typed is written within milliseconds, a vote before the next pair is shown.
    time.sleep(0.5)
    browser.kill()

    browser = open_page()
    assert count(browser) == "2 of 4"
    assert browser.evaluate("document.getElementById('reason').value") == "half a rea"
    assert browser.evaluate("document.querySelector('[aria-pressed=true]').dataset.choice") == "tie"
    browser.evaluate("document.getElementById('reason').focus()")
    browser.evaluate("document.getElementById('reason').setSelectionRange(99, 99)")
    browser.type("son")
    browser.press("Enter")
    browser.wait("document.getElementById('count').textContent === '3 of 4'")
    vote(browser, "2", "more to say")
    assert browser.evaluate("!document.getElementById('end').hidden")
    path = saved(browser, tmp_path / "saved")
    votes = read_votes([path], study / "key.csv").kept
    assert sorted(votes["reason"].fillna("")) == ["", "half a reason", "kinder", "more to say"]
    assert list(votes["choice"]).count("tie") == 1
    items = [task["item"] for task in page_data((study / "pages/a01.html").read_text())["tasks"]]
    given = json.loads(path.read_text())["votes"]
    assert [(v["item"], v["choice"]) for v in given] == list(zip(items, ["left", "right", "tie", "right"], strict=True))
    assert all(v["seconds"] >= 0 for v in given)


def test_back_and_a_choice_that_is_changed(open_page):
    browser = open_page()
    vote(browser, "1", "first thought")
    browser.evaluate("document.getElementById('back').click()")
    assert count(browser) == "0 of 4"
    assert browser.evaluate("document.getElementById('reason').value") == "first thought"
    browser.press("2")
    browser.press("Escape")
    browser.press("1")
    assert browser.evaluate("document.querySelector('[aria-pressed=true]').dataset.choice") == "left"
    browser.press("Enter")
    browser.wait("document.getElementById('count').textContent === '1 of 4'")


def test_enter_without_a_choice_does_nothing(open_page):
    browser = open_page()
    browser.press("Enter")
    time.sleep(0.1)
    assert count(browser) == "0 of 4"


def test_another_computer_goes_on_from_the_file(open_page, tmp_path):
    browser = open_page()
    vote(browser, "1", "kinder")
    vote(browser, "2")
    path = saved(browser, tmp_path / "saved")
    other = open_page(profile="elsewhere")
    assert count(other) == "0 of 4"
    other.give_file("#load", path)
    other.wait("document.getElementById('count').textContent === '2 of 4'")
    wrong = open_page("a02", profile="third")
    for content, message in (
        (path.read_text(), "That file is of a01, this page is for a02."),
        (path.read_text()[:200], "That file is damaged."),
        ("[1]", "That is no file of answers of this page."),
    ):
        given = tmp_path / "given.json"
        given.write_text(content)
        wrong.give_file("#load", given)
        wrong.wait(f"document.getElementById('message').textContent === {json.dumps(message)}")
        assert count(wrong) == "0 of 4"
    shutil.rmtree(tmp_path / "saved")
