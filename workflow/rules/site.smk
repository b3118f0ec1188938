# One page a data set, which opens without a network: its results, and every response with all that was said of it.


rule site:
    input:
        scores=score_files,
        systems="data/tables/{dataset}/systems.parquet",
        tables=multiext("data/tables/{dataset}/", "contexts.parquet", "responses.parquet", "personas.parquet"),
        ratings=lambda wildcards: rating_files(wildcards.dataset),
        judgements=judgement_files,
        results=lambda wildcards: [path for _, path in site_results(wildcards.dataset)],
        figures=lambda wildcards: site_figures(wildcards.dataset),
    output:
        "results/{folder}/{dataset}.provenance.json",
        html=report("results/{folder}/{dataset}.html", caption="../report/site.rst", category="Report"),
    log:
        "logs/render/{dataset}_{folder}.log",
    wildcard_constraints:
        folder="report|local",
    params:
        tables=subpath(input.systems, parent=True),
        title=lambda wildcards: title(wildcards.dataset),
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
        target=lambda wildcards: target(wildcards.dataset),
        main=lambda wildcards: config["tables"]["systems"],
        outputs=lambda wildcards: site_outputs(wildcards.dataset),
        labels=lambda wildcards: judge_labels(wildcards.dataset),
        not_run=lambda wildcards: not_run([wildcards.dataset]),
        results=lambda wildcards: [f"--{name}={path}" for name, path in site_results(wildcards.dataset)],
        code=code("report.site.contents", "report.site.page", "schema", *site_parts()),
    message:
        "Make the page of {wildcards.dataset}"
    shell:
        "comperdial render site {input.scores:q} --tables {params.tables:q} --output {output.html:q} --title={params.title:q} "
        "--source={params.source:q} {params.simulated:q} --rated {params.rated:q} {params.target:q} {params.results:q} "
        "--judgements {input.judgements:q} --labels {params.labels:q} --not-run {params.not_run:q} --main {params.main:q} "
        "{params.outputs:q} "
        "--figures {input.figures:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule sites:
    input:
        [f"{page_folder(dataset)}/{dataset}.html" for dataset in DATASETS],
