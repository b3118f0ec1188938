# Pages: a data set's report, executed notebooks, and the numbers that DVC compares.

SPECS["notebooks"] = load_yaml("notebooks/notebooks.yaml")


def notebook_pages():
    """Return file, data set and entry of each executed notebook, by page name."""
    pages = {}
    for stem, entry in SPECS["notebooks"].items():
        names = [config["tables"]["benchmark"] if name == "benchmark" else name for name in entry["datasets"]]
        for name in dict.fromkeys(names):
            needed = {*entry.get("needs", [])}
            if name in S.rated and S.has(name, entry.get("when", [])) and needed <= {*S.scorers(name)}:
                pages[stem if name == names[0] else f"{stem}_{name}"] = (stem, name, entry)
    return pages


PAGES = notebook_pages() if {"turn", "system"} <= {*EVALUATION["levels"]} else {}
# A page that quotes texts of a downloaded data set may not be published.
NOTEBOOKS = {
    name: f"results/{'local' if entry.get('quotes') and of in S.public else 'notebooks'}/{name}.html"
    for name, (_, of, entry) in PAGES.items()
}


def notebook_inputs(wildcards):
    _, dataset, entry = PAGES[wildcards.name]
    needed = [score_file(dataset, name) for name in entry.get("needs", [])]
    found = [path for paths in inputs_of(entry, [dataset], names_of).values() for path in paths]
    return [
        f"results/{dataset}/about.json",
        *needed,
        *found,
        *tables(dataset, "systems", "contexts", "responses", "ratings"),
    ]


rule notebook:
    input:
        notebook_inputs,
        notebook=lambda wildcards: f"notebooks/{PAGES[wildcards.name][0]}.py",
    output:
        report("results/{folder}/{name}.html", caption=CAPTION, category="Notebooks"),
    log:
        "logs/notebook/{folder}/{name}.log",
    wildcard_constraints:
        folder=one_of(("local", "notebooks")),
        name=one_of(PAGES),
    params:
        dataset=lambda wildcards: PAGES[wildcards.name][1],
        source=lambda wildcards: S.source(PAGES[wildcards.name][1]),
        target=EVALUATION["target"],
        caption=lambda wildcards: f"An executed notebook (data set {PAGES[wildcards.name][1]})",
        code=code_of("report/notebook.py", "report/reading.py", "report/showing.py"),
    shell:
        "comperdial notebook {input.notebook} --dataset {params.dataset} --source {params.source} --target {params.target:q}"
        " --output {output} > {log} 2>&1"


def page_inputs(wildcards):
    dataset = wildcards.dataset
    found = [*tables(dataset), *(score_file(dataset, name) for name in S.scorers(dataset))]
    found += [
        f"results/{dataset}/about.json",
        *(f"results/{dataset}/judgements/{name}.parquet" for name in judged(dataset)),
    ]
    if dataset in S.rated:
        found += [f"results/{dataset}/{name}.parquet" for name in ("correlations", "ceilings", "pairs")]
        found += [f"results/{dataset}/tables/alpha.csv"]
        found += [f"results/{dataset}/figures/{name}.png" for name in shown("figures", DATASET, dataset)]
    return found


PAGE = "comperdial page {wildcards.dataset} --output {output} > {log} 2>&1"
ABOUT_PAGE = "The page of a data set: its results in tables that sort, and every response with its ratings, scores and judgements"


rule page:
    input:
        page_inputs,
    output:
        report("results/{dataset}/report.html", caption=CAPTION, category="Report"),
    log:
        "logs/page/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(name for name in S.datasets if name not in S.public),
    params:
        caption=ABOUT_PAGE,
        outputs=lambda wildcards: S.outputs(wildcards.dataset),
        code=code(*modules_of("report/page.py", "auditing/dataset.py"), "report/site"),
    shell:
        PAGE


use rule page as local_page with:
    output:
        report("results/local/{dataset}.html", caption=CAPTION, category="Report"),
    log:
        "logs/local_page/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(name for name in S.datasets if name in S.public),


rule summary:
    input:
        correlations="results/{dataset}/correlations.parquet",
        about="results/{dataset}/about.json",
    output:
        multiext("results/{dataset}/summary/", "metrics.json", "plot.json", "environment.json"),
    log:
        "logs/summary/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.rated),
    params:
        code=code("report/summary.py"),
    shell:
        "comperdial summary {wildcards.dataset} --output results/{wildcards.dataset}/summary > {log} 2>&1"
