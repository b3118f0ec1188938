# The USR table, all correlations of a data set, and what DVC compares.


rule usr_table:
    input:
        correlations=expand("results/correlations/{dataset}.parquet", dataset=USR),
        reported=multiext("data/paper/", "usr_correlations.csv", "usr_rows.yaml", "sources.csv"),
    output:
        multiext("results/tables/usr", *FORMATS),
        html=report("results/tables/usr.html", caption="../report/usr_table.rst", category="Tables"),
        png=report("results/figures/usr.png", caption="../report/usr_figure.rst", category="Figures"),
        other=figure_of("usr"),
    log:
        "logs/render/usr_table.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        figure=subpath(output.png, strip_suffix=".png"),
        datasets=USR,
        target=lambda wildcards: config["evaluation"]["target"],
        not_run=lambda wildcards: not_run(USR),
        recorded=lambda wildcards: recorded_of(),
        titles=lambda wildcards: titles(USR),
        code=code("report.usr", "report.figures"),
    message:
        "Render the USR table and its figure"
    shell:
        "comperdial render usr {input.correlations:q} --output {params.stem:q} --figure {params.figure:q} "
        "--datasets {params.datasets:q} --target={params.target:q} --not-run {params.not_run:q} "
        "--recorded {params.recorded:q} --titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule correlation_table:
    input:
        correlations="results/correlations/{dataset}.parquet",
    output:
        multiext("results/tables/{dataset}_correlations", *FORMATS),
        html=report(
            "results/tables/{dataset}_correlations.html",
            caption="../report/correlation_table.rst",
            category="Tables",
        ),
    log:
        "logs/render/{dataset}_correlations.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        target=lambda wildcards: target(wildcards.dataset),
        not_run=lambda wildcards: not_run([wildcards.dataset]),
        titles=lambda wildcards: titles([wildcards.dataset]),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.tables"),
    message:
        "Render all correlations on {wildcards.dataset}"
    shell:
        "comperdial render correlations {input.correlations:q} --output {params.stem:q} {params.target:q} "
        "--not-run {params.not_run:q} --titles {params.titles:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule usr_agreement:
    input:
        ratings=expand("data/tables/{dataset}/turn_ratings.parquet", dataset=USR),
        reported="data/paper/usr_agreement.csv",
    output:
        multiext("results/tables/usr_agreement", *FORMATS),
        html=report("results/tables/usr_agreement.html", caption="../report/usr_agreement.rst", category="Tables"),
    log:
        "logs/render/usr_agreement.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        titles=lambda wildcards: titles(USR),
        code=code("aggregate", "report.tables"),
    message:
        "Render the agreement of USR's annotators"
    shell:
        "comperdial render agreement {input.ratings:q} --output {params.stem:q} --titles {params.titles:q} "
        "--made-from {input:q} --code {params.code:q} 2> {log:q}"


rule summary:
    input:
        correlations="results/correlations/{dataset}.parquet",
    output:
        multiext("results/summary/{dataset}/", "metrics.json", "plot.json", "environment.json"),
    log:
        "logs/render/{dataset}_summary.log",
    params:
        folder=subpath(output[0], parent=True),
        target=lambda wildcards: target(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.summary"),
    message:
        "Summarise {wildcards.dataset} for dvc"
    shell:
        "comperdial render summary {input.correlations:q} --output {params.folder:q} {params.target:q} "
        "{params.simulated:q} 2> {log:q}"


rule summaries:
    input:
        expand("results/summary/{dataset}/metrics.json", dataset=RATED),


rule tables:
    input:
        expand("results/tables/{dataset}_systems.html", dataset=DATASETS),
        expand("results/tables/{dataset}_{kind}.html", dataset=RATED, kind=["correlations", "alpha"]),
        expand("results/tables/{dataset}_recorded_judges.html", dataset=[name for name in DATASETS if heard_of(name)]),
        expand("results/tables/{dataset}_judges.html", dataset=[name for name in DATASETS if judged_by(name)]),
        rules.usr_table.output if USR else [],
        rules.usr_agreement.output if USR else [],
