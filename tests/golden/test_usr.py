"""Published results on the USR files (values and sources are in studies/usr/), and our own."""

import csv
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import evaluation, schema
from comperdial.evaluation import ratings
from comperdial.metrics import create, scoring
from comperdial.stats.correlation import is_starred


def evaluated(tables, target="Overall"):
    """Return the rows of all responses but the reference, their references, and people's mean ratings of them."""
    references = tables["contexts"].set_index("context_id")["references"]
    rows = tables["responses"].query("system_id != 'Original Ground Truth'").reset_index(drop=True)
    human = tables["ratings"].pivot_table("rating", ["item_id", "system_id"], "dimension")[target]
    rating = np.array([human[key] for key in zip(rows["context_id"], rows["system_id"], strict=True)])
    return rows, list(references[rows["context_id"]]), rating


def correlated(*tables, **choice):
    return evaluation.correlations(evaluation.samples(*tables, **choice))


@pytest.fixture(scope="session")
def scored(usr_tables, tmp_path_factory):
    """Return a function: dataset, metric kind and options -> table ``scores``."""
    folders = {}
    for dataset, tables in usr_tables.items():
        folders[dataset] = tmp_path_factory.mktemp(dataset)
        for name, frame in tables.items():
            schema.write(folders[dataset] / f"{name}.parquet", frame, name)

    @cache
    def score(dataset, kind, options):
        return scoring.score_tables(create(kind, **dict(options)), kind, folders[dataset])

    return lambda dataset, kind, **options: score(dataset, kind, tuple(options.items()))


@pytest.fixture(scope="session")
def correlations(usr_tables, scored):
    """Return a function: dataset, output, metric kind and options -> {(level, coefficient): Correlation row}."""

    @cache
    def of_metric(dataset, kind, options):
        found = scored(dataset, kind, **dict(options))
        return correlated(found, usr_tables[dataset]["ratings"], targets=["Overall"])

    def look_up(dataset, output, kind, **options):
        found = of_metric(dataset, kind, tuple(options.items()))
        found = found[found["output"] == output]
        return {(row.level, row.coefficient): row for row in found.itertuples()}

    return look_up


BLEU = {"text": "raw", "smoothing": "nlg-eval"}

NLGEVAL = {"text": "raw", "tokens": "nlg-eval", "beta": 1.2}

CHARACTERS = {"text": "raw", "unit": "character"}


@pytest.mark.parametrize(
    ("dataset", "kind", "options", "output", "turn", "system", "within"),
    [
        ("usr_persona", "f1", CHARACTERS, "f1", (0.1422, 0.1241), (0.9956, 1.0), 0.0002),
        ("usr_topical", "f1", CHARACTERS, "f1", (0.1645, 0.1690), (0.6120, 0.6), 0.0002),
        # rouge-score's own tokens, and ParlAI's normalisation: other people's recomputations.
        ("usr_topical", "rouge", {"text": "raw"}, "rougeL-f", (0.2680, 0.2855), None, 0.0005),
        ("usr_persona", "rouge", {"text": "raw"}, "rougeL-f", (0.0934, 0.0651), None, 0.001),
        ("usr_topical", "f1", {}, "f1", (0.2832, 0.2984), None, 0.0005),
        ("usr_persona", "f1", {}, "f1", (0.1413, 0.1375), None, 0.003),
    ],
)
def test_published_correlations(correlations, dataset, kind, options, output, turn, system, within):
    found = correlations(dataset, output, kind, **options)
    assert found["turn", "pearson"].n == {"usr_persona": 240, "usr_topical": 300}[dataset]
    assert found["system", "pearson"].n == {"usr_persona": 4, "usr_topical": 5}[dataset]
    assert found["turn", "pearson"].value == pytest.approx(turn[0], abs=min(within, 0.002))
    assert found["turn", "spearman"].value == pytest.approx(turn[1], abs=within)
    if system:
        assert found["system", "pearson"].value == pytest.approx(system[0], abs=within)
        assert found["system", "spearman"].value == pytest.approx(system[1], abs=within)


@pytest.mark.parametrize("dataset", ["usr_topical", "usr_persona"])
@pytest.mark.parametrize("text", ["raw", "normalised"])
def test_bleu_correlations_match_scipy(usr_tables, correlations, scored, dataset, text):
    """Over units of the scores as stored; over systems of means without rounding, from exact fractions."""
    human = usr_tables[dataset]["ratings"].pivot_table("rating", ["item_id", "system_id"], "dimension")["Overall"]
    ways = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    of_dataset = scored(dataset, "bleu", text=text)
    for output, rows in of_dataset.groupby("output"):
        x = rows.set_index(["item_id", "system_id"])["value"].astype(np.float64)
        y = human.reindex(x.index)
        exact = [
            side.map(Fraction).groupby("system_id").sum().map(lambda total: total / 60)
            # Ratings are thirds: three people gave whole numbers.
            for side in (x, (3 * y).round())
        ]
        of_systems = [side.rank().to_numpy() for side in exact]
        found = correlations(dataset, output, "bleu", text=text)
        for name, way in ways.items():
            assert found["turn", name].value == pytest.approx(way(x, y).statistic, abs=1e-12), (output, name)
            if name != "pearson":
                assert found["system", name].value == pytest.approx(way(*of_systems).statistic, abs=1e-12), (
                    output,
                    name,
                )


def test_published_asterisks(root, correlations):
    """Yeh et al. star p >= 0.05: theirs and ours agree on the sixteen values of the two metrics that match."""
    metrics = {"BLEU-4": ("bleu-4", "bleu", BLEU), "ROUGE-L": ("rougeL-f", "rouge", NLGEVAL)}
    published = [r for r in _read(root / "studies/usr/reported.csv") if r["source"] == "yeh2021"]
    compared = 0
    for row in published:
        if row["metric"] in metrics:
            output, kind, options = metrics[row["metric"]]
            found = correlations(row["dataset"], output, kind, **options)[row["level"], row["coefficient"]]
            assert is_starred(found.p) == (row["starred"] == "true"), row
            compared += 1
    assert compared == 16


@pytest.mark.parametrize(
    ("dataset", "turn", "system"),
    [("usr_topical", (0.3663, 0.3752), (0.9656, 0.9)), ("usr_persona", (0.1799, 0.1870), (0.85, 0.8))],
)
def test_nltk_meteor(correlations, real_wordnet, dataset, turn, system):
    found = correlations(dataset, "meteor", "meteor", text="raw")
    assert (found["turn", "pearson"].value, found["turn", "spearman"].value) == pytest.approx(turn, abs=2e-4)
    assert (found["system", "pearson"].value, found["system", "spearman"].value) == pytest.approx(system, abs=2e-4)


def test_including_the_reference_inflates_correlation(usr_tables):
    """The reference scored against itself matches no published number (and is why it is not scored)."""
    tables = usr_tables["usr_topical"]
    references = tables["contexts"].set_index("context_id")["references"]
    rows = tables["responses"]
    scores = create("bleu", text="raw").score(list(rows["response"]), list(references[rows["context_id"]]))["bleu-4"]
    human = tables["ratings"].pivot_table("rating", ["item_id", "system_id"], "dimension")["Overall"]
    rating = [human[key] for key in zip(rows["context_id"], rows["system_id"], strict=True)]
    assert stats.pearsonr(scores, rating)[0] == pytest.approx(0.4314, abs=0.002)


def _read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_inter_annotator_agreement(root, usr_tables):
    """USR's Table 1, all 24 cells to four digits, but for one whose printed digits are transposed."""
    found = pd.concat([ratings.agreement(tables["ratings"]) for tables in usr_tables.values()])
    ours = found.set_index(["dataset", "dimension", "coefficient"])["value"]
    published = _read(root / "studies/usr/agreement.csv")
    assert len(published) == 24
    for row in published:
        key = (row["dataset"], row["dimension"], row["coefficient"])
        expected = 0.4138 if key == ("usr_persona", "Engaging", "spearman") else float(row["value"])
        assert round(ours[key], 4) == pytest.approx(expected, abs=1e-9), key


def test_system_means(root, usr_tables):
    """USR's Table 2, overall quality: within 0.01, but for one cell (Topical, New Human Generated)."""
    for row in _read(root / "studies/usr/system_means.csv"):
        ratings = usr_tables[row["dataset"]]["ratings"]
        chosen = ratings[(ratings["system_id"] == row["system_id"]) & (ratings["dimension"] == "Overall")]
        odd = (row["dataset"], row["system_id"]) == ("usr_topical", "New Human Generated")
        assert chosen["rating"].mean() == pytest.approx(float(row["value"]), abs=0.023 if odd else 0.0101)


def test_file_contents(usr_tables):
    shapes = {d: {n: len(f) for n, f in tables.items()} for d, tables in usr_tables.items()}
    assert shapes["usr_persona"] == {
        "systems": 5, "contexts": 60, "personas": 60, "responses": 300, "ratings": 5400,
    }  # fmt: skip
    assert shapes["usr_topical"] == {
        "systems": 6, "contexts": 60, "personas": 0, "responses": 360, "ratings": 6480,
    }  # fmt: skip
    assert (usr_tables["usr_topical"]["contexts"]["facts"].map(len) == 0).sum() == 8
    raters = {d: set(t["ratings"]["annotator_id"]) for d, t in usr_tables.items()}
    assert {d: len(r) for d, r in raters.items()} == {"usr_persona": 4, "usr_topical": 5}


def test_stored_scores_keep_ties(usr_tables):
    """rouge-score's F = 2PR/(P+R) gives equal scores other last digits: Spearman goes from 0.1142 to 0.1118."""
    tables = usr_tables["usr_persona"]
    rows, references, rating = evaluated(tables)
    for kind in ("f1", "bleu", "rouge", "chrf"):
        for scores in create(kind).score(list(rows["response"]), references).values():
            stored = scoring.significant(scores)
            assert [f"{score:.12g}" for score in stored] == [f"{score:.12g}" for score in scores]
            assert len(np.unique(stored)) == len({f"{score:.12g}" for score in scores})
    rouge = create("rouge").score(list(rows["response"]), references)["rougeL-f"]
    noisy, mended = (stats.spearmanr(x, rating)[0] for x in (rouge, scoring.significant(rouge)))
    assert (round(noisy, 4), round(mended, 4)) == (0.1118, 0.1142)


METRICS = [create("bleu", text="raw", smoothing="nlg-eval"), create("rouge", text="raw", tokens="nlg-eval", beta=1.2)]

LABELS = {"bleu-1": "BLEU-1", "bleu-2": "BLEU-2", "bleu-3": "BLEU-3", "bleu-4": "BLEU-4", "rougeL-f": "ROUGE-L"}

GRADE = ("grade_convai2", "grade_dailydialog", "grade_empathetic")

# USR prints .3006 for what the data give as .30066.
ODD = ("mehri2020", "usr_topical", "BLEU-3", "spearman")


@pytest.fixture(scope="module")
def cells(real_tables):
    """Return dataset, level, metric as papers call it, coefficient -> value."""
    found = {}
    for dataset in ("usr_topical", "usr_persona", *GRADE):
        tables = real_tables(dataset)
        target = "coherence" if dataset in GRADE else "Overall"
        rows, references, rating = evaluated(tables, target)
        for metric in METRICS:
            for output, scores in metric.score(list(rows["response"]), references).items():
                if output not in LABELS:
                    continue
                turns = pd.DataFrame({"score": scores, "human": rating})
                for level, frame in (("turn", turns), ("system", turns.groupby(rows["system_id"]).mean())):
                    for test in (stats.pearsonr, stats.spearmanr):
                        name = test.__name__.removesuffix("r")
                        found[dataset, level, LABELS[output], name] = test(frame["score"], frame["human"])[0]
    return found


def test_every_printed_digit(root, cells):
    compared, odd = 0, []
    for name in ("reported", "grade_correlations"):
        with (root / f"studies/usr/{name}.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = (row["dataset"], row["level"], row["metric"], row["coefficient"])
                if row["metric"] in LABELS.values():
                    compared += 1
                    digits = len(row["value"].split(".")[1])
                    if f"{cells[key] + 0.0:.{digits}f}" != f"{float(row['value']):.{digits}f}":
                        odd.append((row["source"], key[0], *key[2:]))
    assert compared == 20 + 16 + 24
    assert odd == [ODD]
    assert cells["usr_topical", "turn", "BLEU-3", "spearman"] == pytest.approx(0.30066, abs=5e-6)


@pytest.mark.parametrize(
    ("dataset", "bleu", "rouge"),
    [
        ("grade_convai2", (0.0026, 0.1281), (0.1362, 0.1405)),
        ("grade_dailydialog", (0.0750, 0.1836), (0.1541, 0.1466)),
        ("grade_empathetic", (-0.0506, 0.0019), (0.0294, -0.0130)),
    ],
)
def test_grade_matches_to_four_digits(cells, dataset, bleu, rouge):
    """As nlg-eval gives them."""
    for label, expected in (("BLEU-4", bleu), ("ROUGE-L", rouge)):
        assert tuple(round(cells[dataset, "turn", label, name], 4) for name in ("pearson", "spearman")) == expected


@pytest.mark.parametrize(
    ("dataset", "models", "different", "ratings"),
    [
        ("grade_convai2", ["bert_ranker", "dialogGPT", "transformer_generator", "transformer_ranker"], 258, 5970),
        ("grade_dailydialog", ["transformer_generator", "transformer_ranker"], 149, 2990),
        ("grade_empathetic", ["transformer_generator", "transformer_ranker"], 147, 2950),
    ],
)
def test_grade_file_contents(real_tables, dataset, models, different, ratings):
    tables = real_tables(dataset)
    assert tables["responses"]["system_id"].value_counts().to_dict() == dict.fromkeys(models, 150)
    assert tables["contexts"]["dialogue_id"].nunique() == different
    assert tables["contexts"]["history"].map(len).unique().tolist() == [2]
    assert tables["contexts"]["references"].map(len).unique().tolist() == [1]
    rated = tables["ratings"]
    assert len(rated) == ratings
    assert rated.groupby(["item_id", "system_id"]).size().between(8, 11).all()
    assert rated[["dimension", "scale_min", "scale_max", "source"]].drop_duplicates().values.tolist() == [
        ["coherence", 1.0, 5.0, "human"]
    ]
