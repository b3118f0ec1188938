"""The DAG on a small invented data set: what runs, what does not run again, and what breaks how."""

import hashlib
import json
import re
import resource
import shutil
import sys
from dataclasses import replace

import pandas as pd
import pytest

import tinymodels
from comperdial import schema, scoring
from comperdial.metrics import Batch, create
from comperdial.models.vectors import VectorStore
from minidata import mini_items, write_mirror
from workdir import copied, planned

SCORES = "results/scores/usr_persona/{}.parquet"
ALPHA = "results/tables/usr_persona_alpha.csv"
CORRELATIONS = "results/correlations/usr_persona.parquet"
RECORD = "provenance.json"


def files(folder, suffixes, *stems):
    """Return the names of outputs in several forms."""
    return {f"results/{folder}/{stem}.{suffix}" for stem in stems for suffix in suffixes}


def tables(*stems):
    return files("tables", ("md", "tex", "csv", "html", RECORD), *stems)


def plots(*kinds):
    return files("figures", ("png", "pdf", "svg", "csv", RECORD), *(f"usr_persona_{kind}" for kind in kinds))


def pages(*names):
    return files("notebooks", ("html", RECORD), *(name for name in names if "local/" not in name)) | files(
        "local", ("html", RECORD), *(name.removeprefix("local/") for name in names if "local/" in name)
    )


USR_TABLE = tables("usr") | files("figures", ("png", "pdf", "svg", RECORD), "usr") | pages("06_reading_the_usr_table")
# What is made of robustness.
FROM_CURVES = (
    files("correlations", ["parquet"], "usr_persona_curves", "usr_persona_power")
    | tables("usr_persona_curves", "usr_persona_power")
    | plots("curves")
    | pages("02_which_metric_to_trust", "local/usr_persona")
)
# What is made of correlations.
FROM_CORRELATIONS = (
    files("correlations", ["parquet"], "usr_persona", "usr_persona_ceilings", "usr_persona_comparisons")
    | tables(*(f"usr_persona_{kind}" for kind in ("correlations", "measures", "comparisons")))
    | tables("table_03", "table_04", "table_15")
    | USR_TABLE
    | plots("heatmap", "scatter")
    | files("summary/usr_persona", ["json"], "metrics", "plot", "environment")
    | pages("02_which_metric_to_trust", "local/usr_persona")
    | pages("local/01_the_benchmark_at_a_glance", "local/03_where_judges_and_people_disagree")
)
# What is made of scores that are not evaluated in detail, and of those that are.
FROM_OTHER_SCORES = FROM_CORRELATIONS | tables("usr_persona_systems")
FROM_SCORES = FROM_OTHER_SCORES | FROM_CURVES | plots("slope", "length_bias", "judge_agreement")
# What is made of params.yaml's metrics whatever their scores are.
FROM_METRICS = tables("table_14")
EMBEDDINGS = "data/embeddings"


def vectors(workdir):
    """Return the files of vectors, with the time they were written and their content."""
    files = (workdir.path / EMBEDDINGS).glob("*.sqlite")
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def without_models(workdir):
    """Take the metrics out that run a model, where a test is about something else: loading one takes seconds."""
    path = workdir.path / "params.yaml"
    text = re.sub(r"(?m)^  [\w-]+: \{.*MiniLM.*\n", "", path.read_text())
    path.write_text(re.sub(r', "[\w-]+-minilm:\w+"', "", text))


def test_nothing_changed_nothing_runs_and_that_takes_no_time(finished):
    before = finished.outputs()
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Nothing to be done" in finished.snakemake()
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert finished.rewritten(before) == set()
    # The processor's time, which other load on the machine does not stretch as it stretches the clock's.
    assert (end.ru_utime - start.ru_utime) + (end.ru_stime - start.ru_stime) < 5


def test_touched_files_and_comments_make_nothing_stale(finished):
    before = finished.outputs()
    for name in [*before, "data/paper/usr_rows.yaml"]:
        (finished.path / name).touch()
    finished.edit("src/comperdial/metrics/bleu.py", '"""Sentence BLEU-1', '# A comment.\n"""BLEU-1')
    assert "Nothing to be done" in finished.snakemake("-n")


def test_a_metric_s_parameter_reruns_it_and_what_comes_of_it_only(finished):
    before, scores = finished.outputs(), SCORES.format("bleu_raw")
    finished.edit("params.yaml", "bleu_raw: {kind: bleu, text: raw}", "bleu_raw: {kind: bleu, text: raw, epsilon: 0.1}")
    assert planned(finished) == FROM_SCORES | FROM_METRICS | {scores}
    finished.snakemake("results/tables/usr.csv")
    made = finished.rewritten(before)
    assert {scores, "results/tables/usr.csv"} <= made <= FROM_SCORES | {scores}
    assert "epsilon:0.1" in (finished.path / "results/tables/usr.csv").read_text()


@pytest.mark.parametrize(
    ("module", "stale", "fresh_still"),
    [
        ("metrics/f1", {SCORES.format("f1")}, {SCORES.format("bleu_raw"), "data/tables/usr_persona/contexts.parquet"}),
        ("schema/io", {"data/tables/usr_persona/contexts.parquet", SCORES.format("f1")}, set()),
        ("report/figures", {"results/figures/usr.png"}, {"results/correlations/usr_persona.parquet"}),
        ("stats/resampling", {CORRELATIONS, "results/tables/table_04.csv"}, {SCORES.format("f1"), ALPHA}),
        ("stats/power", {"results/correlations/usr_persona_power.parquet"}, {SCORES.format("f1"), ALPHA}),
        ("report/site/page", {"results/local/usr_persona.html"}, {CORRELATIONS, "results/tables/usr.csv"}),
    ],
)
def test_an_edit_to_code_reruns_what_runs_it(finished, module, stale, fresh_still):
    with (finished.path / f"src/comperdial/{module}.py").open("a") as file:
        file.write("changed = 1\n")
    found = planned(finished)
    assert stale <= found
    assert not fresh_still & found


def test_a_renamed_data_set_is_renamed_in_the_tables(finished):
    finished.edit("data/sources.yaml", "Mini usr_persona", "Another title")
    found = planned(finished)
    named = {"results/tables/usr.md", "results/figures/usr_persona_slope.png", "results/local/usr_persona.html"}
    assert named <= found
    assert SCORES.format("f1") not in found


def test_a_new_reported_number_reruns_the_table_only(finished):
    finished.edit(
        "data/paper/usr_correlations.csv",
        "yeh2021,usr_persona,turn,Overall,BLEU-4,pearson,0.135",
        "yeh2021,usr_persona,turn,Overall,BLEU-4,pearson,0.136",
    )
    assert planned(finished) == USR_TABLE


def test_an_added_metric_runs_alone(finished):
    finished.edit("params.yaml", "  f1: {kind: f1}\n", "  f1: {kind: f1}\n  chrf: {kind: chrf}\n")
    assert planned(finished) == FROM_OTHER_SCORES | FROM_METRICS | {SCORES.format("chrf")}


def test_a_metric_added_as_one_file_and_one_line(finished):
    """docs/adding-a-metric.md, followed: the file, the entry in params.yaml, and the metric is in the tables."""
    before = finished.outputs()
    page = (finished.path / "docs/adding-a-metric.md").read_text()
    code, entry = page.split("```python\n")[1].split("```")[0], page.split("```yaml\n")[1].split("```")[0]
    (finished.path / "src/comperdial/metrics/length_ratio.py").write_text(code)
    finished.edit("params.yaml", "metrics:\n", entry)
    page = "results/tables/usr_persona_correlations.md"
    finished.snakemake(page)
    made = finished.rewritten(before)
    assert {SCORES.format("length_ratio"), page} <= made
    assert made < FROM_OTHER_SCORES | {SCORES.format("length_ratio")}
    table = (finished.path / page).read_text()
    assert "| length_ratio length-ratio |" in table


def test_a_metric_that_cannot_run_is_left_out_by_name(finished):
    table = (finished.path / "results/tables/usr.md").read_text()
    assert "- METEOR: not run: " in table
    assert "expected WordNet 9.9" in table
    assert "| METEOR | Yeh et al. 2021 | not run | 0.253 |" in table
    assert "| BERTScore | Yeh et al. 2021 | not run | 0.152 |" in table
    assert "- BERTScore: not run: model 'roberta-large' is not present" in table
    assert "- Word F1: not run: no metric 'f1_raw' in params.yaml" in table
    for kind in ("correlations", "systems"):
        page = (finished.path / f"results/tables/usr_persona_{kind}.md").read_text()
        assert "meteor_raw: not run: " in page
        assert "- bertscore_raw: not run: model 'roberta-large' is not present" in page
    made = {path.stem for path in (finished.path / SCORES).parent.glob("*.parquet")}
    assert made == {"f1", "bleu_raw", "bertscore-minilm", "grounded-cosine-minilm", "cpds-d_rules"}


def test_each_text_is_encoded_once_for_all_metrics_of_an_encoder(finished):
    metrics = create("bertscore", model="all-MiniLM-L6-v2", layer=6), create("grounded_cosine")
    # What is too long of a context is cut at its other end: contexts have a file of their own.
    file, ends = (
        finished.path / EMBEDDINGS / f"{encoder.namespace()}.sqlite"
        for encoder in (metrics[0].encoder, replace(metrics[1].encoder, keep="end"))
    )
    assert set(vectors(finished)) == {file, ends}, "the last layer is layer 6"
    texts, contexts = set(), set()
    for responses, context in scoring.parts(finished.path / "data/tables/usr_persona"):
        columns = (responses["response"], context["references"], context["history"], context["facts"])
        texts |= {text for metric in metrics for text in metric.texts(Batch(*map(list, columns)))}
        contexts |= {" ".join(u["text"].strip() for u in history[-3:]) for history in context["history"]}
    assert {*VectorStore(file, 384).missing([*texts, "another text"])} == {"another text"}
    assert {*VectorStore(ends, 384).missing([*contexts, "another text"])} == {"another text"}
    logs = "".join(path.read_text() for path in (finished.path / "logs").rglob("*.log"))
    assert sum(map(int, re.findall(r"(\d+) texts encoded", logs))) == len(texts) + len(contexts)
    frame = pd.read_csv(finished.path / "results/tables/usr.csv").dropna(subset=["ours"])
    assert {"BERTScore on MiniLM (normalised)", "Grounded cosine on MiniLM"} <= set(frame["label"])


def test_a_further_metric_of_an_encoder_makes_no_vector_anew(finished):
    before, encoded, third = finished.outputs(), vectors(finished), SCORES.format("embedding-minilm")
    finished.edit("params.yaml", "  f1: {kind: f1}\n", "  f1: {kind: f1}\n  embedding-minilm: {kind: embedding}\n")
    # Its texts are those of bertscore-minilm: no model is needed either.
    finished.snakemake(CORRELATIONS)
    made = finished.rewritten(before)
    assert {third, CORRELATIONS} <= made <= {third} | FROM_CORRELATIONS
    assert vectors(finished) == encoded
    # It is not compared with the others in detail: their comparisons were made again and are the same.
    assert planned(finished) == (FROM_OTHER_SCORES | FROM_METRICS) - made - tables("usr_persona_comparisons")


def test_vectors_that_were_deleted_are_made_again_when_they_are_needed(finished):
    shutil.rmtree(finished.path / EMBEDDINGS)
    assert "Nothing to be done" in finished.snakemake("-n"), "as in a clone, where there never were any"
    before, changed = finished.outputs(), SCORES.format("bertscore-minilm")
    finished.edit("params.yaml", "layer: 6}", "layer: 6, text: raw}")
    assert planned(finished) == FROM_SCORES | FROM_METRICS | {changed}
    finished.snakemake(changed)
    assert finished.rewritten(before) == {changed}
    assert vectors(finished)
    assert before[changed][1] != finished.outputs()[changed][1]


def test_a_model_of_ones_own_and_another_in_its_place(finished):
    """A folder given as `model:` is known by its bytes, and what did not fit it is in the scores."""
    before, scores = finished.outputs(), SCORES.format("bertscore_raw")
    tinymodels.bert(finished.path / "tiny", seed=1)
    own = "bertscore_raw: {kind: bertscore, text: raw, model: ./tiny, layer: 2, max_length: 40}"
    finished.edit("params.yaml", "bertscore_raw: {kind: bertscore, text: raw}", own)
    finished.snakemake(scores)
    assert finished.rewritten(before) == {scores}
    frame = schema.read(finished.path / scores, "scores").query("output == 'f1'")
    assert 0 < (frame["cut"] > 0).sum() < len(frame) == 24
    assert frame["signature"].str.contains(r"model:tiny@[0-9a-f]{12}\|").all()
    assert "Nothing to be done" in finished.snakemake(scores, "-n")
    # Where the model is not, as in a clone: the scores stand, and only what is made of them is left to do.
    (finished.path / "tiny").rename(finished.path / "elsewhere")
    assert planned(finished) == FROM_OTHER_SCORES | FROM_METRICS
    tinymodels.bert(finished.path / "tiny", seed=2)
    found = {name for name in planned(finished) if not name.startswith(EMBEDDINGS)}
    assert found == FROM_OTHER_SCORES | FROM_METRICS | {scores}


def test_scores_made_elsewhere_stay_where_their_metric_cannot_run(finished, real_wordnet):
    """Pulled METEOR scores are used as they are without WordNet, also when everything else is made anew."""
    right, table = "meteor_raw: {kind: meteor, text: raw}", "results/tables/usr_persona_correlations.md"
    without_models(finished)
    finished.edit("params.yaml", 'meteor_raw: {kind: meteor, text: raw, wordnet: "9.9"}', right)
    finished.snakemake(SCORES.format("meteor_raw"))
    made = finished.outputs()
    assert SCORES.format("meteor_raw") in made
    finished.edit("src/comperdial/metrics/text.py", "def normalise", "changed = 1\ndef normalise")
    signature = "def roots() -> list[Path]:"
    finished.edit("src/comperdial/wordnet.py", signature, f"{signature}\n    return []\n")
    finished.snakemake(table)
    assert SCORES.format("f1") in finished.rewritten(made)
    assert SCORES.format("meteor_raw") not in finished.rewritten(made)
    assert "meteor_raw: not run" not in (finished.path / table).read_text()
    finished.edit("params.yaml", right, "meteor_raw: {kind: meteor, text: raw, alpha: 0.5}")
    finished.snakemake(table)
    assert "meteor_raw: not run: WordNet is not on this machine" in (finished.path / table).read_text()


def test_no_output_names_this_machine(finished):
    for name, (_, content) in finished.outputs().items():
        assert str(finished.path).encode() not in content, name
        assert sys.prefix.encode() not in content, name
    for record in (finished.path / ".snakemake/metadata").rglob("*"):
        assert not record.is_file() or sys.prefix.encode() not in record.read_bytes()


def test_one_level_alone_runs_through(finished):
    level = "system"
    finished.edit("params.yaml", "levels: [turn, dialogue, system]", f"levels: [{level}]")
    finished.edit("params.yaml", "target: Overall", "target: Engaging")
    made = [f"results/tables/{name}.csv" for name in ("usr", "usr_persona_correlations", "usr_persona_power")]
    finished.snakemake(*made, "results/figures/usr_persona_heatmap.png", "results/figures/usr_persona_curves.png")
    frame = pd.read_csv(finished.path / made[0])
    assert set(frame.dropna(subset=["ours"])["level"]) == {level}
    assert frame["reported"].isna().all(), "what was reported of Overall does not stand beside Engaging"


def test_altered_raw_data_is_not_read(finished):
    before = finished.outputs()
    raw = finished.path / "data/raw/invented/mini/data/ratings.json"
    raw.write_text(raw.read_text().replace("august", "winter"))
    said = finished.snakemake(check=False)
    assert "source 'mini_ratings' is altered" in said
    tables = {name for name in finished.rewritten(before) if not name.startswith("data/raw")}
    assert tables == set()


def test_every_table_figure_and_notebook_has_a_record_of_all_its_inputs(finished):
    results = finished.path / "results"
    folders = ("tables", "figures", "notebooks", "local")
    made = {path for folder in folders for path in (results / folder).iterdir()}
    records = {path for path in made if path.name.endswith(f".{RECORD}")}
    stems = {path.with_suffix("") for path in made - records}
    assert {path.with_name(path.name.removesuffix(f".{RECORD}")) for path in records} == stems
    for path in records:
        record = json.loads(path.read_text())
        assert record["inputs"], path.name
        assert record["code"]["files"], path.name
        for name, entry in record["inputs"].items():
            whole = hashlib.sha256((finished.path / name).read_bytes()).hexdigest()
            assert whole[:16] == entry["sha256"], (path.name, name)
        for suffix, digest in record["outputs"].items():
            form = path.with_name(path.name.removesuffix(f".{RECORD}") + suffix)
            assert hashlib.sha256(form.read_bytes()).hexdigest()[:16] == digest, form.name


def test_a_table_s_record_is_told_and_held_against_what_is_there_now(finished):
    name = "results/tables/table_04.csv"
    said = finished.run("comperdial", "why", name).stdout
    for part in (
        "made by comperdial render paper-table",
        "inputs (all the same now)",
        f"same      {CORRELATIONS} (",
        "made by",
        "  f1: f1|",
        "versions\n  comperdial ",
        "\n  numpy ",
    ):
        assert part in said, (part, said)
    assert re.search(r"\n  main_target +Overall\n", said)
    assert re.search(r"code, sha256 [0-9a-f]{12} \(all the same now\)", said)
    assert "changed" not in said
    with (finished.path / "data/paper/comperdial_rows.yaml").open("a") as file:
        file.write("# changed\n")
    with (finished.path / "src/comperdial/report/paper_tables.py").open("a") as file:
        file.write("changed = 1\n")
    (finished.path / name).write_text("typed by hand\n")
    said = finished.run("comperdial", "why", name).stdout
    for file in ("data/paper/comperdial_rows.yaml", "src/comperdial/report/paper_tables.py", "table_04.csv"):
        assert re.search(rf"changed   {re.escape(file)}", said), said


def test_the_tidy_frame_says_the_same_as_the_table(finished):
    frame = pd.read_csv(finished.path / "results/tables/usr.csv")
    run = frame.dropna(subset=["ours", "reported"])
    assert (run["ours"] - run["reported"] - run["difference"]).abs().max() < 2e-6
    metrics = json.loads((finished.path / "results/summary/usr_persona/metrics.json").read_text())
    row = frame.query("label == 'BLEU-4 (nlg-eval)' and level == 'turn' and coefficient == 'pearson'").iloc[0]
    assert metrics["usr_persona"]["turn"]["bleu_raw"]["bleu-4"]["pearson"] == pytest.approx(row["ours"], abs=1e-4)
    assert row["n"] == 24, "six contexts by four systems: the references are not scored"


CHANGED_BY_A_RATING = [
    *(f"results/tables/usr_persona_{kind}.csv" for kind in ("correlations", "measures", "comparisons")),
    "results/tables/table_04.csv",
    "results/tables/table_04.md",
    "results/local/usr_persona.html",
]


def with_another_rating(workdir):
    """Change one rating of one response by one person in the file that everything starts from."""
    items = mini_items()
    response = items[0]["responses"][1]
    assert response["model"] == "Copier" and response["Overall"][0] == 3
    response["Overall"][0] = 5
    write_mirror(workdir.path, items).replace(workdir.path / "data/sources.yaml")


@pytest.fixture(scope="module")
def rerated(_finished, tmp_path_factory):
    """Return a finished copy in which one rating was changed and what shows it was made anew."""
    workdir = copied(_finished, tmp_path_factory.mktemp("rerated") / "repository")
    with_another_rating(workdir)
    workdir.snakemake(*CHANGED_BY_A_RATING)
    return workdir


def test_one_changed_rating_changes_the_tables(finished, rerated):
    """No cell is typed by hand: each correlation with what was rated is another one, and the one that it should be."""
    for name in CHANGED_BY_A_RATING:
        assert (finished.path / name).read_bytes() != (rerated.path / name).read_bytes(), name
    key = ["level", "against", "metric", "output", "coefficient"]
    both = []
    for workdir in (finished, rerated):
        frame = pd.read_csv(workdir.path / "results/tables/table_04.csv").dropna(subset=["ours"])
        both.append(frame.query("coefficient == 'pearson'").set_index(key)["ours"])
    before, after = both
    assert list(before.index) == list(after.index) and len(before) > 8
    assert (before != after).all(), before[before == after]
    before, after = (pd.read_csv(w.path / "results/tables/usr_persona_comparisons.csv") for w in (finished, rerated))
    assert (before["pearson_difference"] != after["pearson_difference"]).all()
    # What is rated by nobody stays what it was.
    for name in [SCORES.format("f1"), "results/tables/usr_persona_judges.csv"]:
        assert (finished.path / name).read_bytes() == (rerated.path / name).read_bytes()
    ratings = schema.read(rerated.path / "data/tables/usr_persona/turn_ratings.parquet", "turn_ratings")
    people = ratings.query("dimension == 'Overall'").groupby(["context_id", "system_id"])["rating"].mean()
    scores = schema.read(rerated.path / SCORES.format("f1"), "scores").query("output == 'f1'")
    paired = scores.set_index(["item_id", "system_id"])["value"].rename_axis(people.index.names)
    expected = paired.corr(people.reindex(paired.index))
    cell = ("turn", "turn", "f1", "f1", "pearson")
    assert after is not before
    ours = pd.read_csv(rerated.path / "results/tables/table_04.csv").set_index(key)["ours"]
    assert ours[cell] == pytest.approx(expected, abs=1e-4)
    row = next(x for x in (rerated.path / "results/tables/table_04.md").read_text().splitlines() if "| F1 |" in x)
    assert f"| {expected:.3f} [" in row


def test_another_folder_gives_the_same_bytes(rerated, fresh):
    """From raw data to tables, figures and pages, and whether all is made or only what a change makes stale."""
    with_another_rating(fresh)
    notebook = "results/notebooks/02_which_metric_to_trust.html"
    fresh.snakemake(*CHANGED_BY_A_RATING, notebook)
    rerated.snakemake(notebook)
    ours, theirs = rerated.outputs(), fresh.outputs()
    assert set(theirs) <= set(ours)
    assert plots("heatmap", "scatter", "slope", "length_bias", "judge_agreement", "curves") <= set(theirs)
    assert {name for name in theirs if ours[name][1] != theirs[name][1]} == set()


def test_another_seed_draws_other_intervals_and_tests_of_the_same_scores(finished):
    before = finished.outputs()
    finished.edit("params.yaml", "  resamples: 100\n  seed: 1\n", "  resamples: 120\n  seed: 2\n")
    assert planned(finished) == FROM_CORRELATIONS | FROM_CURVES | plots("length_bias", "judge_agreement")
    first = schema.read(finished.path / CORRELATIONS, "correlations")
    finished.snakemake(CORRELATIONS)
    assert finished.rewritten(before) == files(
        "correlations", ["parquet"], "usr_persona", "usr_persona_ceilings", "usr_persona_comparisons"
    )
    second = schema.read(finished.path / CORRELATIONS, "correlations")
    values = first["coefficient"] != "spa"
    pd.testing.assert_series_equal(first.loc[values, "value"], second.loc[values, "value"])
    there = first["low"].notna()
    assert there.any() and (first.loc[there, "low"] != second.loc[there, "low"]).any()


def test_datasets_can_be_chosen(finished):
    said = finished.snakemake("results/tables/usr.md", "--config", "datasets=[usr_topical]", "-n", "-p")
    assert "--output results/correlations/usr_topical.parquet" in said
    assert "--datasets usr_topical --target" in said
    assert "results/tables/usr_persona" not in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[usr_persona]", "[usr_person]", "unknown dataset 'usr_person'"),
        ("kind: bleu,", "kind: blue,", "unknown metric 'blue'; expected one of"),
        ("kind: bleu, text: raw", "kind: bleu, txt: raw", "Did you mean 'text'?"),
        ("cosine, model: all-MiniLM-L6-v2", "cosine, model: all-MiniLM", "unknown model 'all-MiniLM'; expected one of"),
        ("[usr_topical, usr_persona]", "[usr_topicl]", "unknown dataset 'usr_topicl'"),
        ("datasets: [usr_persona]", "dataset: [usr_persona]", "params.yaml, line 2: unknown key 'dataset'"),
        (
            "  f1: {kind: f1}",
            "  f1: {kind: f1}\n  f1: {kind: chrf}",
            "params.yaml, line 14: not valid YAML (the key 'f1' is",
        ),
        ("  f1: {kind: f1}", "   f1: {kind: f1}", "params.yaml, line 14: not valid YAML"),
    ],
)
def test_a_wrong_configuration_is_one_message(fresh, old, new, message):
    fresh.edit("params.yaml", old, new)
    said = fresh.snakemake("-n", check=False)
    assert any(part in said for part in message.split("|")), said
    assert "Traceback" not in said


def test_broken_data_stops_with_its_name_and_leaves_no_output(fresh):
    ratings = fresh.path / "mirror/invented/mini/data/ratings.json"
    ratings.write_bytes(ratings.read_bytes()[:-100])
    done = fresh.run("snakemake", "--cores", "2", check=False)
    assert done.returncode != 0
    assert "ratings.json: source 'mini_ratings' has sha256" in done.stdout
    assert "expected sha256" in done.stdout
    assert "Traceback" not in done.stdout
    assert not [name for name in fresh.outputs() if name.startswith(("data/tables", "results/scores"))]


def test_the_report_is_one_offline_page(finished):
    finished.snakemake("tables", "--report", "report.html")
    page = (finished.path / "report.html").read_text()
    assert "usr.html" in page
    assert len(page) > 100_000


def test_scores_computed_elsewhere_stand_beside_the_others(finished):
    """docs/recorded-scores.md, followed: a file and an entry, and the scores are in the tables."""
    before, mine = finished.outputs(), SCORES.format("mine")
    scores = (
        pd.read_parquet(finished.path / SCORES.format("f1"))
        .query("output == 'f1'")
        .rename(columns={"item_id": "context_id"})
    )
    path = finished.path / "scores.csv"
    scores[["context_id", "system_id", "value"]].iloc[:-6].to_csv(path, index=False)
    page = (finished.path / "docs/recorded-scores.md").read_text()
    entry = page.split("```yaml\n")[1].split("```")[0].replace("dataset: demo", "dataset: usr_persona")
    finished.edit("params.yaml", "evaluation:\n", f"{entry}evaluation:\n")
    table = "results/tables/usr_persona_correlations.md"
    finished.snakemake(table)
    assert {mine, table} <= finished.rewritten(before) <= FROM_CORRELATIONS | {mine}
    text = (finished.path / table).read_text()
    assert "| mine score |" in text
    assert "- mine is recorded|format:table|from:scores.csv|sha256:" in text
    assert "mine score: 75.0% of the rated responses of usr_persona have a score" in text
    assert {mine, table} & planned(finished) == set()
    path.write_text(path.read_text().replace(",Dull,", ",Dul,"))
    assert mine in planned(finished)
    assert not {SCORES.format("f1"), "data/tables/usr_persona/contexts.parquet"} & planned(finished)
    assert finished.run("snakemake", "--cores", "2", mine, check=False).returncode != 0
    log = (finished.path / "logs/recorded/usr_persona/mine.log").read_text()
    assert "system 'Dul': no such response" in log
    finished.edit("params.yaml", "  mine: {", "  bleu: {")
    said = finished.snakemake("-n", check=False)
    assert "params.yaml, recorded.bleu: 'bleu' is the name of a metric that is computed here" in said
    assert "Traceback" not in said


def ledger(workdir):
    return {path: path.read_bytes() for path in (workdir.path / "data/ledger").rglob("*.parquet")}


def test_a_judge_is_asked_once_and_again_only_for_another_prompt(finished):
    scores, before = SCORES.format("cpds-d_rules"), ledger(finished)
    assert len(before) == 1
    first = (finished.path / scores).read_bytes()
    (finished.path / scores).unlink()
    finished.snakemake(scores)
    # Out of the ledger alone: no answer was added.
    assert ledger(finished) == before and (finished.path / scores).read_bytes() == first
    finished.edit("src/comperdial/judges/prompts/cpds_detail.md", "### Response:", "### Response:\n")
    stale = planned(finished)
    assert {
        scores,
        "results/judgements/usr_persona/cpds-d_rules.parquet",
        "results/tables/usr_persona_judges.md",
    } <= stale
    assert not {name for name in stale if name.startswith("results/scores/")} - {scores}
    finished.snakemake(scores)
    assert set(before) < set(ledger(finished)) and (finished.path / scores).read_bytes() != first


def test_judges_are_named_with_their_scores_and_without(finished):
    table = (finished.path / "results/tables/usr_persona_judges.md").read_text()
    assert "cpds-d by rules | 24 |" in table and "no LLM's" in table
    assert "cpds-d by gpt-4: not run: not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0" in table
    correlations = (finished.path / "results/tables/usr_persona_correlations.md").read_text()
    assert "cpds-d_rules humanness" in correlations and "judge:rules" in correlations
    assert "cpds-d_gpt-4: not run: not asked" in correlations


def test_a_second_run_in_one_folder_says_that_another_holds_it(fresh):
    made = "data/tables/usr_persona/responses.parquet"
    locks = fresh.path / ".snakemake/locks"
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text(f"{made}\n")
    refused = fresh.snakemake(made, check=False)
    [said] = [line for line in refused.splitlines() if "Another run holds this folder" in line]
    assert "snakemake --unlock" in said
    assert "LockException" in refused
    assert "holds this folder" not in fresh.snakemake("--unlock")
    assert not any(locks.glob("*.lock"))
