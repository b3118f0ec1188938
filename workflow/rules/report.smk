# Pages: a data set's report, executed notebooks, and the numbers that DVC compares.

BENCHMARK = config["tables"]["benchmark"]
FORMS = [name for name in dict.fromkeys([BENCHMARK, "usr_topical", "usr_persona"]) if name in S.rated]
JUDGES_WITH_REASONS = {
    name: [one for one in S.recorded_judges_of(name) if not S.recorded_judges[one].prompt.startswith("geval")]
    for name in FORMS
}


def evaluated_files(dataset, *kinds):
    return [f"results/{dataset}/{kind}.parquet" for kind in kinds]


def disagreeing(dataset):
    """Return what the notebook on judges reads: their scores and judgements."""
    names = [*judged(dataset), *JUDGES_WITH_REASONS[dataset]]
    return [
        *(score_file(dataset, name) for name in names),
        *(f"results/{dataset}/judgements/{name}.parquet" for name in judged(dataset)),
    ]


def notebook_pages():
    """Return each executed notebook by the page's name: its file, its data set, and what it reads."""
    pages = {}
    for dataset in FORMS:
        suffix = "" if dataset == BENCHMARK else f"_{dataset}"
        rated = ["correlations", "pairs", "ceilings"]
        pages[f"02_which_metric_to_trust{suffix}"] = (dataset, evaluated_files(dataset, *rated, "curves", "power"))
        if dataset == BENCHMARK:
            alpha = f"results/{dataset}/tables/alpha.csv"
            pages["01_the_benchmark_at_a_glance"] = (dataset, [*evaluated_files(dataset, *rated), alpha])
        if judged(dataset) or JUDGES_WITH_REASONS[dataset]:
            reads = [*evaluated_files(dataset, "correlations", "pairs"), *disagreeing(dataset)]
            pages[f"03_where_judges_and_people_disagree{suffix}"] = (dataset, reads)
    if "demo" in S.simulated:
        compared = {"04_add_your_system": ["f1", "chrf", "bleu", "rouge"]}
        compared["05_add_your_metric"] = ["f1", "chrf", "grounded-cosine-minilm", "cpds-d_rules"]
        demo = S.challenges["demo"]
        for name, metrics in compared.items():
            if {*metrics} <= {*S.scorers("demo")}:
                reads = [score_file("demo", metric) for metric in metrics] + evaluated_files("demo", "correlations", "pairs")
                pages[name] = ("demo", [*reads, demo["dialogues"]])
        checked = [f"results/demo/tables/{name}.csv" for name in ("systems", "alpha")]
        truth = ["data/tables/demo/truth.parquet", "studies/comperdial/benchmarks.csv", demo["simulated"]["raters"]]
        pages["07_checking_the_demo"] = ("demo", checked + truth)
    if "usr" in STUDIES and "usr" in shown("tables", "usr") and {*FORMS} >= {*S.sets_of.get("usr", [""])}:
        pages["06_reading_the_usr_table"] = (S.sets_of["usr"][0], ["results/studies/usr/tables/usr.csv"])
    return pages


PAGES = notebook_pages() if {"turn", "system"} <= {*EVALUATION["levels"]} else {}
# A page that quotes the texts of a fetched data set is not ours to publish.
FOLDERS = {name: "local" if name[:2] in ("01", "03") and S.is_public(of) else "notebooks" for name, (of, _) in PAGES.items()}
NOTEBOOKS = [
    f"results/{FOLDERS[name]}/{name}.html"
    for name, (dataset, _) in PAGES.items()
    if {*(S.sets_of["usr"] if name.startswith("06") else [dataset])} <= {*S.chosen}
]


def notebook_file(name):
    return f"notebooks/{next(path.stem for path in Path('notebooks').glob('*.py') if name.startswith(path.stem))}.py"


rule notebook:
    input:
        lambda wildcards: PAGES[wildcards.name][1],
        lambda wildcards: tables(PAGES[wildcards.name][0], "systems", "contexts", "responses", "ratings"),
        lambda wildcards: f"results/{PAGES[wildcards.name][0]}/about.json",
        notebook=lambda wildcards: notebook_file(wildcards.name),
    output:
        report("results/{folder}/{name}.html", caption="../report/artifact.rst", category="Notebooks"),
    params:
        dataset=lambda wildcards: PAGES[wildcards.name][0],
        source=lambda wildcards: S.source(PAGES[wildcards.name][0]),
        target=EVALUATION["target"],
        caption=lambda wildcards: f"An executed notebook (data set {PAGES[wildcards.name][0]})",
        code=code("report/*.py"),
    log:
        "logs/notebook/{folder}/{name}.log",
    wildcard_constraints:
        folder=one_of(("local", "notebooks")),
        name=one_of(PAGES),
    message:
        "Execute the notebook {wildcards.name}"
    shell:
        "comperdial notebook {input.notebook} --dataset {params.dataset} --source {params.source} --target {params.target:q}"
        " --output {output} > {log} 2>&1"


def page_inputs(wildcards):
    dataset = wildcards.dataset
    found = [*tables(dataset), *(score_file(dataset, name) for name in S.scorers(dataset))]
    found += [f"results/{dataset}/about.json", *(f"results/{dataset}/judgements/{name}.parquet" for name in judged(dataset))]
    if dataset in S.rated:
        found += evaluated_files(dataset, "correlations", "ceilings", "pairs")
        found += [f"results/{dataset}/tables/alpha.csv"]
        found += [f"results/{dataset}/figures/{name}.png" for name in shown("figures", DATASET, dataset)]
    return found


PAGE = "comperdial page {wildcards.dataset} --output {output} > {log} 2>&1"
ABOUT_PAGE = "The page of a data set: its results in tables that sort, and every response with its ratings, scores and judgements"


rule page:
    input:
        page_inputs,
    output:
        report("results/{dataset}/report.html", caption="../report/artifact.rst", category="Report"),
    params:
        caption=ABOUT_PAGE,
        outputs=lambda wildcards: S.outputs(wildcards.dataset),
        code=code("report/*.py", "report/site"),
    log:
        "logs/page/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(name for name in S.datasets if not S.is_public(name)),
    message:
        "{wildcards.dataset}: make the page"
    shell:
        PAGE


use rule page as local_page with:
    output:
        report("results/local/{dataset}.html", caption="../report/artifact.rst", category="Report"),
    log:
        "logs/local_page/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(name for name in S.datasets if S.is_public(name)),


rule summary:
    input:
        correlations="results/{dataset}/correlations.parquet",
        about="results/{dataset}/about.json",
    output:
        multiext("results/{dataset}/summary/", "metrics.json", "plot.json", "environment.json"),
    params:
        code=code("report/summary.py"),
    log:
        "logs/summary/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.rated),
    message:
        "{wildcards.dataset}: write the numbers that DVC compares"
    shell:
        "comperdial summary {wildcards.dataset} --output results/{wildcards.dataset}/summary > {log} 2>&1"
