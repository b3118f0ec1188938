"""`comperdial site`: README, docs and results as one folder of linked pages that load nothing from a network."""

import posixpath
import re
import shutil
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from comperdial import cli
from comperdial.report.render import SIMULATED
from comperdial.report.website.build import build

TABLE = (
    "<!doctype html>\n<html><head><title>{title}</title></head><body>\n<h1>{title}</h1><p>{caption}</p></body></html>\n"
)


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.loaded += [found[key] for key in ("src", "href", "srcset") if key in found and tag != "a"]


@pytest.fixture
def repository(tmp_path):
    """Return a small repository with a README, two pages and a result of each kind."""
    root = tmp_path / "repository"
    texts = {
        "README.md": "# Bench\n\nThe finding. See `results/studies/usr/tables/usr.html`, [how](docs/how.md#two-words) and "
        "[the code](src/code.py).\n\n![Drawn](docs/images/usr.png)\n",
        "CHANGELOG.md": "# Changelog\n",
        "docs/how.md": "# How\n\n[Back](../README.md)\n\n## Two words\n\n| a |\n|:--|\n| b |\n",
        "docs/images/usr.png": "png",
        "results/studies/usr/tables/usr.html": TABLE.format(title="USR", caption="Real."),
        "results/demo/tables/systems.html": TABLE.format(title="Systems", caption=f"All. {SIMULATED}"),
        "results/studies/usr/figures/usr.png": "png",
        "results/demo/report.html": "<html><head><meta http-equiv='Content-Security-Policy' content='x'></head><body>\n</body>",
        "results/notebooks/01_first.html": "<html><body>\n<h1>First</h1></body>",
        "results/local/secret.html": "<p>texts that are not ours",
        "results/mine/report.html": "<p>results of the user's own",
        **{f"results/{name}.dvc": "" for name in ("demo", "studies/usr", "notebooks")},
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def broken(folder):
    """Return links that lead nowhere, or out of the folder, as (page, link)."""
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if not parts.scheme:
                target = path.parent / unquote(parts.path) if parts.path else path
                target = folder / posixpath.normpath(target.relative_to(folder).as_posix())
                here = target.is_file() and (
                    not parts.fragment or target not in pages or parts.fragment in pages[target].ids
                )
                found += [] if here else [(path.relative_to(folder).as_posix(), link)]
    return found


def test_the_website_of_a_small_repository(repository, tmp_path):
    website = build(repository, tmp_path / "site", studies={"usr": "The USR study"})
    made = {path.relative_to(website.path).as_posix() for path in website.path.rglob("*") if path.is_file()}
    assert made == {
        "index.html", "changelog.html", "style.css", "docs/index.html", "docs/how.html", "docs/images/usr.png",
        "results/tables.html", "results/studies/usr/tables/usr.html", "results/demo/tables/systems.html",
        "results/figures.html", "results/studies/usr/figures/usr.png", "results/data_sets.html", "results/demo/report.html",
        "results/notebooks.html", "results/notebooks/01_first.html",
    }  # fmt: skip
    assert broken(website.path) == []
    index = (website.path / "index.html").read_text()
    assert '<a href="results/studies/usr/tables/usr.html"><code>results/studies/usr/tables/usr.html</code></a>' in index
    assert '<a href="docs/how.html#two-words">how</a> and the code.' in index
    assert index.index("The finding") < index.index("On this site") < index.index("2, ours next to")
    assert '<div class="scroll" tabindex="0"><table>' in (website.path / "docs/how.html").read_text()
    tables = (website.path / "results/tables.html").read_text()
    assert tables.index("The USR study") < tables.index(">USR</a>") < tables.index(">Systems (SIMULATED)</a>")
    for path in website.path.rglob("*.html"):
        assert path.read_text().count('<nav class="website"') == 1, path
    # Its policy refuses a style that it did not come with.
    assert "<style>" not in (website.path / "results/demo/report.html").read_text()


def test_the_website_of_this_repository_has_no_broken_link_and_loads_nothing_from_elsewhere(root, tmp_path):
    pages = [root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for path in [*pages, root / "benchmarks/README.md", *(root / "docs").rglob("*.*")]:
        target = tmp_path / "repository" / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    website = build(tmp_path / "repository", tmp_path / "site")
    assert broken(website.path) == []
    for path in website.path.rglob("*.html"):
        assert not [link for link in Page(path).loaded if re.match(r"(https?:)?//", link)], path
    assert "//" not in re.sub(r"/\*.*?\*/", "", (website.path / "style.css").read_text())


def test_without_results_the_website_is_built_and_says_how_to_get_them(repository, monkeypatch, capsys):
    shutil.rmtree(repository / "results")
    monkeypatch.chdir(repository)
    assert cli.main(["site"]) == 0
    said = capsys.readouterr()
    assert "results: none" in said.out and "dvc pull" in said.err and "make reproduce" in said.err
    assert broken(repository / "site") == []
    assert "results/studies/usr/tables/usr.html</code>" in (repository / "site/index.html").read_text()


def test_an_earlier_website_is_replaced_and_any_other_folder_is_not(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    assert cli.main(["site", "--output", "here"]) == 0
    (repository / "docs/how.md").rename(repository / "docs/other.md")
    (repository / "README.md").write_text("# Bench\n")
    assert cli.main(["site", "--output", "here"]) == 0
    assert not (repository / "here/docs/how.html").exists() and (repository / "here/docs/other.html").exists()
    assert cli.main(["site", "--output", "docs"]) == 1
    assert "docs: holds something else; expected a new folder" in capsys.readouterr().err
    assert (repository / "docs/other.md").exists()
    assert cli.main(["site", "--output", "docs/other.md"]) == 1
    assert not list(repository.glob(".here-*"))


def test_outside_a_repository_the_command_says_where_to_run_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["site"]) == 1
    assert "README.md: no such file" in (said := capsys.readouterr().err) and "repository's root" in said
    assert list(tmp_path.iterdir()) == []
