# Which notebooks there are, for which data set each runs, and what it reads; functions only.

# What two notebooks score with and compare with, on the demo.
COMPARED = {
    "04_add_your_system": ["f1", "chrf", "bleu", "rouge"],
    "05_add_your_metric": ["f1", "chrf", "grounded-cosine-minilm", "cpds-d_rules"],
}
# What of the package a notebook runs, beside what all of them run.
NOTEBOOK_MODULES = {
    "03_where_judges_and_people_disagree": ["judging.answers.chiang2023", "judging.answers.gpt4_rounds", "sources"],
    "04_add_your_system": [
        "challenge.runner",
        "challenge.submissions",
        "challenge.worker",
        "challenge.tables",
        "scoring",
        "metrics.f1",
        "metrics.chrf",
        "metrics.bleu",
        "metrics.rouge",
    ],
    "05_add_your_metric": ["evaluation", "scoring", "stats.comparison", "stats.intervals"],
}


def tables_of(dataset, *names):
    """Some of a data set's tables, and its ratings."""
    tables = expand("data/tables/{dataset}/{table}.parquet", dataset=dataset, table=names)
    return [*tables, *rating_files(dataset)]


def evaluated(dataset, *kinds):
    """The correlations of a data set, and what else was computed of them."""
    names = [dataset, *(f"{dataset}_{kind}" for kind in kinds)]
    return expand("results/correlations/{name}.parquet", name=names)


def reasoning(dataset):
    """The recorded judges of a data set that say why; G-Eval's prompts ask for a bare number."""
    return [entry for entry in HEARD.values() if entry.dataset == dataset and not entry.prompt.startswith("geval")]


def disagreement_files(dataset):
    """The scores and the reasons of a data set's judges."""
    heard = reasoning(dataset)
    return [
        *judged_files(dataset),
        *(f"results/judgements/{dataset}/{name}.parquet" for name in judged_by(dataset)),
        *(score_file(dataset, entry.name) for entry in heard),
        *(str(raw_path(file)) for entry in heard for file in entry.files.values()),
    ]


def scored_on_demo(notebook):
    """The scores that a notebook compares with; None where some of these metrics are not run."""
    wanted = COMPARED[notebook]
    there = {name for name in METRICS if has_scores("demo", name)} | set(judged_by("demo"))
    return [score_file("demo", name) for name in wanted] if there >= set(wanted) else None


def pages():
    """Each page's name -> the notebook, its data set, and what it reads."""
    found = {}
    chosen = [name for name in (BENCHMARK, "usr_topical", "usr_persona") if name in RATED]
    # What they tell is about responses and about systems.
    both = {"turn", "system"} <= set(config["evaluation"]["levels"])
    for dataset in dict.fromkeys(chosen if both else []):
        suffix = "" if dataset == BENCHMARK else f"_{dataset}"
        tables = tables_of(dataset, "systems", "contexts", "responses")
        reads = {"02_which_metric_to_trust": evaluated(dataset, "ceilings", "comparisons", "curves", "power")}
        if dataset == BENCHMARK:
            alpha = f"results/tables/{dataset}_alpha.csv"
            reads["01_the_benchmark_at_a_glance"] = [*evaluated(dataset, "ceilings"), alpha]
        if judged_by(dataset) or reasoning(dataset):
            reads["03_where_judges_and_people_disagree"] = evaluated(dataset) + disagreement_files(dataset)
        found |= {f"{name}{suffix}": (name, dataset, tables + files) for name, files in reads.items()}
    if "demo" in SIMULATED:
        tables = tables_of("demo", "systems", "contexts", "responses")
        for name in COMPARED:
            if scores := scored_on_demo(name):
                found[name] = (name, "demo", [*tables, *scores, *evaluated("demo"), CHALLENGES["demo"]["dialogues"]])
        reads = expand("results/tables/demo_{table}.csv", table=["systems", "alpha"])
        reads += ["data/tables/demo/truth.parquet", "data/paper/benchmarks.csv"]
        reads += [CHALLENGES["demo"]["simulated"]["raters"]]
        found["07_checking_the_demo"] = ("07_checking_the_demo", "demo", tables + reads)
    if USR:
        found["06_reading_the_usr_table"] = ("06_reading_the_usr_table", USR[0], ["results/tables/usr.csv"])
    return found


def notebook_folder(page):
    """Where a page lies: one that quotes the texts of a fetched data set is not ours to pass on, and stays here."""
    notebook, dataset, _ = NOTEBOOKS[page]
    quotes = notebook.startswith(("01", "03"))
    return "results/local" if quotes and dataset in PUBLIC else "results/notebooks"


def notebook_code(page):
    """The package files that a notebook runs."""
    return code("report.notebook", "report.reading", "report.showing", *NOTEBOOK_MODULES.get(NOTEBOOKS[page][0], []))


def notebook_settings(page):
    """What a notebook reads in params.yaml, as JSON: where recorded answers come from."""
    notebook, dataset, _ = NOTEBOOKS[page]
    heard = reasoning(dataset) if notebook.startswith("03") else []
    return json.dumps({entry.name: config["recorded_judges"][entry.name] for entry in heard}, sort_keys=True)


NOTEBOOKS = pages()
