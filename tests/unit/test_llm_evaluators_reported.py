"""src/comperdial/studies/llm_evaluators/*.csv against the paper's text, where that is at hand: every number, both ways."""

import os
import re
from pathlib import Path

import pandas as pd
import pytest

from comperdial.core.errors import SchemaError
from comperdial.perturbations import PERTURBATIONS
from comperdial.report.inputs import read_reported
from comperdial.schema.evaluated import DIMENSIONS

SHORT = {name[:3].capitalize(): name for own in DIMENSIONS.values() for name in own if name != "overall"}
SHORT |= {"Ovr": "overall", "Avg": "average", "Average": "average"}


@pytest.fixture(scope="module")
def paper():
    folder = os.environ.get("COMPERDIAL_PAPERS")
    mirror = os.environ.get("COMPERDIAL_MIRROR")
    places = [Path(folder)] if folder else [Path(mirror).parent / "papers"] if mirror else []
    found = [path for place in places if (path := place / "llm_dialogue_evaluators.txt").is_file()]
    if not found:
        pytest.skip("the paper's text is not at hand: set COMPERDIAL_PAPERS to its folder")
    return found[0].read_text(encoding="utf-8").splitlines()


def read(root, name):
    return pd.read_csv(root / f"src/comperdial/studies/llm_evaluators/{name}.csv", dtype=str, keep_default_na=False)


def rows_between(lines, start, until):
    """Return the cells of the rows from a line to another, given by their beginnings."""
    first = next(place for place, line in enumerate(lines) if line.startswith(start))
    last = next(place for place, line in enumerate(lines) if place > first and line.startswith(until))
    return [
        [cell.strip() for cell in line.split("|")][:-1] for line in lines[first:last] if line.rstrip().endswith("|")
    ]


def numbers(rows):
    return [cell for row in rows for cell in row[1:] if re.fullmatch(r"-?\d+(\.\d+)?", cell)]


# Where each table begins and ends in the text.
TEXT = {
    "2": ("Models | Rel", "We report dimension-wise"),
    "3": ("Turn-Level | ||||||", "Deviation Between"),
    "4": ("Rel | Spe | Int | Und | Ovr | |", "Ensemble Analysis"),
    "5": ("Turn Level | Dialogue Level", "We limit the analysis to Tulu"),
    "6": ("Dimensions | Palm-2 Bison", "For the model-wise"),
    "7": ("Level | Source", "Turn Level | |||||||"),
    "8": ("Perturbations | Palm-2", "Robustness of the LLM"),
}
FILES = {"2": "correlations", "3": "correlations", "4": "rankings", "5": "correlations", "6": "correlations"}
FILES |= {"7": "perturbations", "8": "robustness"}


@pytest.mark.parametrize("number", TEXT)
def test_no_number_is_missing_and_none_is_more(root, paper, number):
    ours = read(root, FILES[number])
    ours = ours[ours["place"] == f"Table {number}"]
    columns = {"7": ["pairs", "threshold"], "8": ["ratio"]}.get(number, ["value"])
    theirs = numbers(rows_between(paper, *TEXT[number]))
    assert sorted(theirs) == sorted(cell for column in columns for cell in ours[column])
    assert not ours.drop(columns=columns).duplicated().any()


def values(frame, **where):
    for column, wanted in where.items():
        frame = frame[frame[column] == wanted]
    return frame


def test_correlations_stand_where_the_paper_has_them(root, paper):
    ours = read(root, "correlations")
    head, *rows = rows_between(paper, *TEXT["2"])
    for metric, *cells in rows:
        for at, (short, cell) in enumerate(zip(head[1:], cells, strict=True)):
            level = "turn" if at < 6 else "dialogue"
            found = values(ours, place="Table 2", metric=metric, level=level, dimension=SHORT[short])
            assert found["value"].tolist() == [cell], (metric, short)
    level, dimensions = "", []
    for first, *cells in rows_between(paper, *TEXT["3"]):
        if first.startswith(("Turn", "Dialogue")):
            level = first.split("-")[0].lower()
        elif not re.match(r"-?\d", cells[0]):
            dimensions = [first, *cells]
        else:
            for short, cell in zip(dimensions, cells, strict=False):
                found = values(ours, place="Table 3", metric=first, level=level, dimension=SHORT[short])
                assert found["value"].tolist() == [cell], (first, short)
    rankings = read(root, "rankings")
    for (first, *dimensions), (dataset, *cells) in zip(*[iter(rows_between(paper, *TEXT["4"]))] * 2, strict=True):
        for short, cell in zip([first, *dimensions], cells, strict=False):
            found = values(rankings, dataset=dataset.lower().replace("-", "_"), dimension=SHORT[short])
            assert found["value"].tolist() == [cell]


def test_ensembles_stand_where_the_paper_has_them(root, paper):
    ours = read(root, "correlations")
    for metric, *cells in rows_between(paper, *TEXT["5"])[2:]:
        places = [(level, score) for level in ("turn", "dialogue") for score in ("dimensions", "direct")]
        for (level, score), cell in zip(places, cells, strict=True):
            found = values(ours, place="Table 5", metric=metric, level=level, score=score, dimension="overall")
            assert found["value"].tolist() == [cell]
    level = "turn"
    for first, *cells in rows_between(paper, *TEXT["6"])[1:]:
        if first == "Dialogue Level":
            level = "dialogue"
            continue
        columns = [("Palm-2 Bison", "direct"), ("ChatGPT", "direct"), ("Top 3 open-source models", "models")]
        for (metric, score), cell in zip(columns, cells, strict=True):
            found = values(ours, place="Table 6", metric=metric, level=level, score=score, dimension=SHORT[first])
            assert found["value"].tolist() == [cell], (first, metric)


def test_perturbations_stand_where_the_paper_has_them(root, paper):
    ours = read(root, "perturbations").set_index("short")
    for short, level, texts, pairs, aims, threshold in rows_between(paper, *TEXT["7"])[1:]:
        row = ours.loc[short]
        assert [row["texts"], row["pairs"], row["threshold"]] == [texts, pairs, threshold]
        assert row["level"] == {"Turn": "turn", "Dial": "dialogue"}[level]
        assert row["dimensions"].split() == [SHORT[aim] for aim in aims.split("/")]
        # What the code takes for the paper's threshold, level and aims.
        known = PERTURBATIONS[row["perturbation"]]
        assert (known.short, known.level, known.threshold, known.paper) == (short, row["level"], float(threshold), True)
        assert set(known.dimensions) == set(row["dimensions"].split())
    assert {name for name, of in PERTURBATIONS.items() if of.paper} == set(ours["perturbation"])


def test_ratios_stand_where_the_paper_has_them(root, paper):
    ours = read(root, "robustness")
    head, *rows = rows_between(paper, *TEXT["8"])
    names = {of.title.lower(): name for name, of in PERTURBATIONS.items() if of.paper} | {"average": "average"}
    level = "turn"
    for first, *cells in rows:
        if first == "Dialogue Level":
            level = "dialogue"
            continue
        title, aim = re.fullmatch(r"(.+?)(?: \((\w+)\))?", first).groups()
        for metric, cell in zip(head[1:], cells, strict=True):
            found = values(
                ours, level=level, perturbation=names[title.lower()], dimension=SHORT[aim] if aim else "", metric=metric
            )
            assert found["ratio"].tolist() == [cell], (first, metric)


def test_data_sets_stand_where_the_paper_has_them(root, paper):
    ours = read(root, "data_sets").set_index("dataset")
    rows = rows_between(paper, "Turn-Level Datasets", "Preliminaries")
    assert len(rows) == 2 + len(ours)
    for name, items, utterances, words, *rated in rows:
        if "Datasets" in name:
            continue
        row = ours.loc[re.sub(r" \(.*", "", name).lower().replace("-", "_")]
        assert [row["items"], row["utterances"]] == [items, utterances]
        assert " / ".join(filter(None, [row["words_before"], row["words"]])) == words
        # Empty cells got lost: what people rated comes before what they did not.
        printed = [{SHORT[part.capitalize()] for part in cell.split(", ")} for cell in rated if cell not in ("", "-")]
        assert [set(row[by].split()) for by in ("human", "gpt-4") if row[by]] == printed
        assert set(row["human"].split()) | set(row["gpt-4"].split()) == set(DIMENSIONS[row["level"]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metric,value\na,0.5\nb,0.5\na,0.6\n", "line 4: the row stands there a second time; expected each once"),
        ("metric,value\na,0.5\nb,half\n", "line 3: column 'value' holds 'half'; expected a number"),
        ("metric,value\na,0.5\nb,\n", "line 3: column 'value' holds ''; expected a number"),
        ("metric,value,starred\na,0.5,\nb,0.5,yes\n", "line 3: column 'starred' holds 'yes'; expected true or false"),
        ("name,value\na,0.5\n", ": no column metric; expected metric, value"),
    ],
)
def test_a_wrong_reported_number_is_named_with_its_line_and_column(tmp_path, text, message):
    path = tmp_path / "numbers.csv"
    path.write_text(text)
    with pytest.raises(SchemaError, match="numbers.csv.*" + re.escape(message)):
        read_reported(path, ["metric"], given=["value"])
