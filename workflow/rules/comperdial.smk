# ComperDial's own tables and figures, for every data set that has what they show.


rule systems_table:
    input:
        scores=score_files,
        tables=lambda wildcards: rating_files(wildcards.dataset),
        systems="data/tables/{dataset}/systems.parquet",
        submissions=lambda wildcards: submission_report(wildcards.dataset),
    output:
        table_of("{dataset}_systems"),
        html=report("results/tables/{dataset}_systems.html", caption="../report/systems.rst", category="Tables"),
    log:
        "logs/render/{dataset}_systems.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=subpath(input.systems, parent=True),
        title=lambda wildcards: title(wildcards.dataset),
        outputs=lambda wildcards: config["tables"]["systems"],
        target=lambda wildcards: target(wildcards.dataset),
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
        not_run=lambda wildcards: not_run([wildcards.dataset]),
        submissions=lambda wildcards, input: [f"--submissions={path}" for path in input.submissions],
        code=code("aggregate", "report.systems"),
    message:
        "Render the systems of {wildcards.dataset}"
    shell:
        "comperdial render systems {input.scores:q} --tables {params.tables:q} --output {params.stem:q} "
        "--title={params.title:q} --outputs {params.outputs:q} {params.target:q} "
        "--source={params.source:q} --not-run {params.not_run:q} {params.submissions:q} {params.simulated:q} "
        "--rated {params.rated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule alpha_table:
    input:
        lambda wildcards: rating_files(wildcards.dataset),
        contexts="data/tables/{dataset}/contexts.parquet",
    output:
        table_of("{dataset}_alpha"),
        html=report("results/tables/{dataset}_alpha.html", caption="../report/alpha.rst", category="Tables"),
    log:
        "logs/render/{dataset}_alpha.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=subpath(input.contexts, parent=True),
        title=lambda wildcards: title(wildcards.dataset),
        seed=config["agreement"]["seed"],
        resamples=config["agreement"]["resamples"],
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
        krippendorff=version("krippendorff"),
        code=code("ratings", "report.ratings"),
    message:
        "Render the raters' agreement on {wildcards.dataset}"
    shell:
        "comperdial render alpha --tables {params.tables:q} --output {params.stem:q} --title={params.title:q} "
        "--seed {params.seed:q} --resamples {params.resamples:q} --source={params.source:q} {params.simulated:q} "
        "--rated {params.rated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
