"""Reports: the four forms of a table, the answering sentence, and the tables of studies and data sets."""

import json
import shutil
import subprocess

import pandas as pd
import pytest

from comperdial import schema
from comperdial.config.studies import DATASET, read_study
from comperdial.core.errors import ComperdialError, NothingToShowError
from comperdial.report import correlations, dataset, render
from comperdial.report.about import label
from comperdial.report.headline import headline, not_run
from comperdial.report.render import Section, Table
from resulttables import correlation, pair, write_results

# The four forms

SPECIAL = "& % _ # ~ ^ < > {braces} − – ‡ “quotes” \"plain\" 'single' $5 \\ | … é τ"


def table(rows=2):
    records = pd.DataFrame(
        {"label": f"metric {at}", "by": SPECIAL, "set": of, "value": at / 10, "p": 0.0012345}
        for at in range(rows)
        for of in ("One & two", "Three")
    )
    cells = {
        "ours": lambda cell: f"{cell['value']:.3f}* #{cell['value'] * 10 + 1:.0f}",
        "reported": lambda cell: render.number(None),
    }
    frame = render.spread(records, {"label": "Metric", "by": "Reported by"}, "set", cells)
    plain = pd.DataFrame({("", "System"): ["bot #1", "bot #2"], ("Rating", "mean"): ["1.0", None]})
    sections = [Section("Turn level", frame), Section("50 % <b>", plain)]
    lost = {"A": "model 'a' is not present", "B": "model 'b' is not present"}
    return Table("A title", SPECIAL, records, sections, ["a note"], "F1.", lost)


def test_forms_put_answer_first_best_in_bold_and_dash_for_missing():
    one = table()
    lines = render.markdown(one).splitlines()
    assert "| Metric | Reported by | One & two ours | One & two reported | Three ours | Three reported |" in lines
    assert sum(line.endswith(r"| **0.000\* #1** | – | **0.000\* #1** | – |") for line in lines) == 1
    assert sum(line.endswith(r"| 0.100\* #2 | – | 0.100\* #2 | – |") for line in lines) == 1
    assert "**0" not in render.markdown(table(1)), "bold means nothing in a column of one rank"
    page = render.page(one)
    assert "&amp; % _ # ~ ^ &lt; &gt;" in page and "<caption>50 % &lt;b&gt;</caption>" in page
    assert "<td><b>0.000* #1</b></td>" in page and '<th colspan="2">One &amp; two</th>' in page
    assert "System   mean\n------   ----\nbot #1    1.0\nbot #2      –\n" in render.text(one)
    for form in (render.markdown(one), page, render.text(one), render.latex(one, "x")):
        assert form.index("F1.") < form.index("0.000")
        assert "Not run: 2 metrics and judges: 2 (their model is not on this machine)" in form
    # CSV is the tidy frame, to the digits that hold.
    simulated = Table("t", render.SIMULATED, pd.DataFrame({"x": [0.12345678], "y_difference": [0.00000012]}), [])
    assert render.csv(simulated) == "x,y_difference,simulated\n0.123457,0,True\n"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX here")
def test_latex_compiles(tmp_path):
    for name, one in {"short": table(), "long": table(120)}.items():
        render.write(one, tmp_path / name)
    head = r"\documentclass{article}\usepackage{booktabs,graphicx,longtable}\begin{document}"
    (tmp_path / "all.tex").write_text(rf"{head}\input{{short}}\input{{long}}\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize(
    ("output", "labels", "called"),
    [
        (("chrf", "chrf"), {}, "chrf"),
        (("bleu", "bleu-2"), {}, "bleu-2"),
        (("f1", "recall"), {"f1": "Word F1", "f1:f1": "Word F1"}, "Word F1, recall"),
        (("f1", "f1"), {"f1": "Word F1", "f1:f1": "Word F1"}, "Word F1"),
        (("m", "o"), {}, "m o"),
    ],
)
def test_an_output_has_one_name(output, labels, called):
    assert label(output, labels) == called


# The sentence that answers an evaluation claims no more than the tests allow

OF = {"level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled", "coefficient": "spearman"}
ROW = {"low": 0.3, "high": 0.5, "over": None, "loso_value": None, "loso_system": None, "p": 0.001}
ROW |= {"p_exact": None, "n": 240, "coverage": 1.0}


def values_of(**values):
    """Return correlations: of each metric a value, or what differs from the usual row."""
    rows = [
        OF | ROW | {"metric": m, "output": m} | (v if isinstance(v, dict) else {"value": v}) for m, v in values.items()
    ]
    return pd.DataFrame(rows).astype({"value": "float64", "low": "float64"})


def pairs_of(*tests):
    frame = pd.DataFrame(tests, columns=["metric_a", "metric_b", "difference", "p_adjusted"]).assign(**OF)
    frame[["output_a", "output_b"]] = frame[["metric_a", "metric_b"]]
    return frame.astype({"p_adjusted": "float64"})


THREE = {"a": 0.4, "b": 0.3, "c": 0.2}


@pytest.mark.parametrize(
    ("values", "pairs", "expected"),
    [
        (THREE, [("a", "b", 0.1, 0.3), ("a", "c", 0.2, 0.2), ("b", "c", 0.1, 0.01)],
         "none of the 2 others can be separated from it (Holm-corrected paired tests at 0.05)."),
        (THREE, [("a", "b", 0.1, 0.01), ("c", "a", -0.2, 0.01)], "it is significantly better than all 2 others"),
        (THREE, [("b", "a", -0.1, 0.3), ("a", "c", 0.2, 0.01)],
         "1 of the 2 others cannot be separated from it, 1 correlates significantly worse"),
        (THREE, [("a", "b", 0.1, None), ("a", "c", 0.2, 0.01)], "1 correlates significantly worse, 1 was not tested"),
        (THREE, [("a", "b", -0.1, 0.01), ("a", "c", 0.2, 0.2)], "1 correlates better where both have scores"),
        (THREE, [("b", "c", 0.1, 0.2)], "of the 2 metrics that were tested, b has the highest correlation"),
        ({"human": 0.9, "a": 0.4}, [], "Over 240 responses, a has the highest correlation with people's ratings"),
        ({"a": {"value": 0.4, "low": -0.1}}, [], "Spearman's ρ 0.400 [-0.10, 0.50], an interval that includes 0;"),
        ({"a": {"value": 0.4, "low": None, "p": 0.2}}, [], "0.400, not significant;"),
        ({"a": {"value": -0.2, "low": -0.3, "high": -0.1}}, [], "none correlates positively"),
        ({"a": {"value": 0.4, "loso_system": "Human", "loso_value": 0.1}}, [], "(without Human: 0.100)"),
        ({"a": {"value": 0.4, "over": "contexts, these systems"}}, [], ", for these systems only;"),
        ({"a": {"value": 0.4, "coverage": 0.62}}, [], "Over 240 responses (62 % of those rated), a has"),
        ({"a": {"value": 0.8, "n": 4, "level": "system"}}, [], "Over 4 systems, a has"),
        ({"a": None}, [], "No metric has a correlation with people's ratings."),
    ],
)  # fmt: skip
def test_sentence_claims_only_what_tests_support(values, pairs, expected):
    assert expected in headline(values_of(**values), pairs_of(*pairs))


def test_sentence_names_raters_and_counts_skipped_by_reason():
    assert "with SIMULATED ratings" in headline(values_of(**THREE), pairs_of(), source="simulated")
    assert "with gpt's (no person's) ratings" in headline(values_of(**THREE), pairs_of(), source="gpt")
    lost = {"a": "model 'x' is not present", "b": "model 'y' is not present", "c": "takes 3 minutes"}
    text = "Not run: 3 metrics and judges: 2 (their model is not on this machine), 1 (takes 3 minutes)"
    assert not_run(lost) == text
    assert not_run({"bleu": "no references"}) == "Not run: bleu: no references"


# The tables of a study: its rows next to the values a paper reports

ROWS = [
    {"label": "Chr", "metric": "chrf", "output": "chrf", "reported": "chrF", "source": "a2020", "note": "a note"},
    {"label": "F1 (word)", "metric": "f1", "output": "f1"},
    {"label": "BLEURT", "metric": "bleurt", "output": "bleurt"},
    {"label": "GRADE", "reported": "GRADE", "source": "b2021", "not_run": "no weights"},
]
REPORTED = """source,place,dataset,level,dimension,metric,output,coefficient,value,starred,note
a2020,Table 1,one,turn,overall,chrF,,pearson,0.3,false,
b2021,Table 2,one,turn,overall,GRADE,,pearson,0.5,true,
b2021,Table 2,one,turn,Fluency,chrF,,pearson,0.9,true,
"""


def result(of, metric, value, **more):
    row = correlation(of, metric, metric, 0.0) | {"value": value, "low": None, "high": None, "p": 0.01}
    return row | {"signature": f"{metric}|model:m@1|v:1", "n": 300} | more


RESULTS = [
    result("one", "chrf", 0.33, low=0.2, high=0.4, loso_value=0.1, loso_system="s"),
    result("one", "f1", 0.21, low=0.1, high=0.3, p=0.2, coverage=0.5, cut=3),
    result("one", "chrf", 0.8, p=0.2, level="system", n=4),
    result("one", "f1", 0.9, target="Fluency"),
    result("one", "f1", 0.7, grouping="item"),
    result("two", "f1", 0.4),
    result("two", "chrf", None, coverage=0.0, lacking="references", n=0),
]


@pytest.fixture
def study(tmp_path):
    def make(rows=ROWS, reported=REPORTED, source="human", **entry):
        pairs = [pair("one", "chrf:chrf", "f1:f1", 0.12, 0.001)]
        more = {"outputs": ["chrf:chrf", "f1:f1"], "not_run": {"bleurt": "no model"}, "apart": [], "metrics": []}
        inputs = write_results(tmp_path, RESULTS, pairs, source=source, recorded_of={}, **more)
        (tmp_path / "reported.csv").write_text(reported)
        known = {"caption": "Correlations.", "rows": rows, "coefficients": ["pearson"], "sources": {"a2020": "A"}}
        known |= {"levels": {"turn": "turn", "system": "turn"}}
        about = {"name": "mine", "title": "Mine", "entry": known | entry, "datasets": ["one", "two"]}
        return correlations.correlations(inputs | {"reported": [tmp_path / "reported.csv"]}, about)

    return make


def test_results_are_shown_next_to_reported_values(study):
    made = study()
    lines = render.markdown(made).splitlines()
    titles = "| Metric | Reported by | Set one ours | Set one reported | Set one difference | Set two ours |"
    assert titles in lines
    assert r"| Chr | A | **0.330‡ [0.20, 0.40] #1** | 0.300 | +0.030 | not run |" in lines
    assert r"| F1 (word) | – | 0.210\* [0.10, 0.30] #2 | – | – | 0.400 |" in lines
    assert r"| GRADE | b2021 | 0.500\* |" in lines and r"| Chr | A | 0.80\* (n 4) |" in lines
    assert not any(line.startswith("| BLEURT") for line in lines), "empty rows are left out"
    cell = made.frame.set_index(["label", "dataset", "level"]).loc[("Chr", "one", "turn")]
    assert (cell["ours"], cell["reported"], cell["source"], cell["loso_halved"]) == (0.33, 0.3, "a2020", True)
    for note in (
        "F1 (word): 50.0% of the rated responses of one have a score",
        "F1 (word): the input of 3 responses of one did not fit the model and was cut",
        "Not run: Chr: two has no references where overall was rated",
        "Chr; F1 (word): computed with the model m@1",
    ):
        assert note in made.notes
    assert (made.not_run["BLEURT"], made.not_run["GRADE"]) == ("no model", "no weights")


def test_reported_values_for_other_or_simulated_data_are_not_compared(study):
    frame = study(reported_of="one").frame.set_index(["label", "dataset", "level"])
    assert frame.loc[("GRADE", "two", "turn"), ["reported", "reported_of"]].tolist() == [0.5, "one"]
    assert frame["difference"].notna().sum() == 1
    table = study(source="simulated")
    assert table.caption.endswith(render.SIMULATED) and "reported" not in table.frame
    sections = study(rows=ROWS[1::-1], sort="pearson", section_by="dataset").sections
    assert [section.title for section in sections] == ["Set one", "Set two"]
    assert [*sections[0].frame.index.get_level_values(0)] == ["Chr", "F1 (word)"], "sorted"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [{"label": "x", "metric": "f1"}]}, "study mine, rows: the row is"),
        ({"reported": REPORTED.replace("0.3,", "much,")}, "line 2: value is 'much'; expected a number"),
        ({"reported": REPORTED + REPORTED.splitlines()[1] + "\n"}, "line 5: the row is there twice"),
        ({"rows": [ROWS[0] | {"reported": "chrf++"}]}, "unknown metric reported by a2020 'chrf"),
        ({"rows": [ROWS[0] | {"source": "a2021"}]}, "unknown source of reported values 'a2021'"),
    ],
)
def test_invalid_rows_and_values_are_reported(study, change, message):
    with pytest.raises(ComperdialError, match=message):
        study(**change)


# The tables of any data set


def score(metric, value, **more):
    return result("d", metric, value, **({"output": "o", "coefficient": "spearman", "n": 50} | more))


def of_pair(one, other, difference, p, **more):
    return pair("d", f"{one}:o", f"{other}:o", difference, p, coefficient="spearman", **more)


DATASET_RESULTS = {
    "correlations": [
        score("b", 0.2), score("a", 0.4, low=0.3, high=0.5), score("c", None, coverage=0.0, n=0), score("local", 0.1),
        score("local", 0.25, grouping="system"), score("a", 0.3, grouping="item", low=0.2, high=0.4, p=None),
    ],
    "pairs": [of_pair("a", "b", 0.1, 0.01), of_pair("a", "c", 0.2, 0.001), of_pair("b", "c", 0.1, 0.6)],
    "power": [
        of_pair("a", "b", 0.04, None, varied="systems", size=n, power=p) for n, p in {10: 0.3, 30: 0.85, 100: 0.9}.items()
    ],
    "curves": [
        score(metric, 0.4, varied="dialogues", size=10, agreement=0.7, low=0.1, high=high, repeats=100)
        for metric, high in (("a", 0.3), ("b", 0.5))
    ],
}  # fmt: skip


@pytest.fixture
def shown(tmp_path):
    """Return a function that makes a table of a data set from some results."""
    known = {
        "dataset": "d", "title": "D", "source": "human", "target": None, "main_target": "overall", "recorded_of": {},
        "metrics": [], "labels": {"a": "A"}, "judges": {}, "apart": [], "systems_outputs": ["a:o"],
        "outputs": ["a:o", "b:o", "c:o"], "not_run": {"gone": "no model"}, "agreement": {"seed": 1, "resamples": 20},
    }  # fmt: skip
    (tmp_path / "about.json").write_text(json.dumps(known))

    def make(name, tables):
        inputs = {"about": [tmp_path / "about.json"]}
        for key, rows in tables.items():
            inputs[key] = [tmp_path / f"{key}.parquet"]
            frame = pd.DataFrame(rows or None).reindex(columns=list(schema.table(key).columns))
            schema.write(inputs[key][0], schema.validate(frame, key), key)
        entry = {"name": name, **read_study(DATASET)["tables"][name]}
        return getattr(dataset, entry["function"])(inputs, {"entry": entry, "datasets": ["d"]})

    return make


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("correlations", ["| A, o | **0.400 [0.30, 0.50] #1** | – |", r"| b o | 0.200 #2 | – |", "| local o | 0.100 | 0.250 |"]),
        ("measures", ["| A, o | 0.400 | 0.300 [0.20, 0.40] | – |", "| local o | 0.100 | – | 0.250 |"]),
        ("comparisons", ["| Turn level, ratings of turns, Spearman | 3 | 2 | 2 | 2 |", "| 1 | A, o | 2 | 0 | 0 |  | + | + |",
                         "| 2 | b o | 0 | 1 | 1 | − |  | o |"]),
        ("power", ["| b o | 0.040 | 0.30 | 0.85 | 0.90 | 30 |", "| 0.02 to 0.05 | 1 | 0.30 | 0.85 | 0.90 |"]),
        ("curves", ["| Turn level, ratings of turns, Spearman | 0.70 | 0.30 |"]),
    ],
)  # fmt: skip
def test_data_set_tables(shown, name, lines):
    table = shown(name, DATASET_RESULTS)
    assert {*lines} <= {*render.markdown(table).splitlines()}
    if name == "correlations":
        assert "A, o has the highest correlation with people's ratings of turns" in table.headline
        assert table.not_run["c o"] == "no rated response of d has a score"
    if name in ("comparisons", "power", "curves"):
        with pytest.raises(NothingToShowError, match="this needs two metrics"):
            shown(name, {key: [] for key in DATASET_RESULTS})
