# The ComperDial paper's numbered tables, ours beside the reported values.


rule benchmark_table:
    input:
        correlations=lambda wildcards: worth(numbered_dataset(wildcards), "measures"),
        ceilings=lambda wildcards: f"results/correlations/{numbered_dataset(wildcards)}_ceilings.parquet",
        reported=multiext("data/paper/comperdial_", "correlations.csv", "rows.yaml"),
    output:
        table_of("{before}table_{number}"),
        html=report(
            "results/tables/{before}table_{number}.html",
            caption="../report/benchmark_table.rst",
            category="The paper's tables",
        ),
    log:
        "logs/render/{before}table_{number}.log",
    wildcard_constraints:
        before=before_numbers(),
        number="03|04|05|15",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        target=lambda wildcards: target(numbered_dataset(wildcards)),
        not_run=lambda wildcards: not_run([numbered_dataset(wildcards)]),
        titles=lambda wildcards: titles([numbered_dataset(wildcards)]),
        simulated=lambda wildcards: simulated(numbered_dataset(wildcards)),
        judges=lambda wildcards: judge_metrics([numbered_dataset(wildcards)]),
        code=code("report.paper_tables"),
    message:
        "Render the paper's Table {wildcards.number} ({output.html})"
    shell:
        "comperdial render paper-table {input.correlations:q} --ceilings {input.ceilings:q} --number {wildcards.number:q} "
        "--output {params.stem:q} {params.target:q} --not-run {params.not_run:q} --titles {params.titles:q} "
        "{params.simulated:q} --judges {params.judges:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule usr_numbered_table:
    input:
        correlations=[worth(dataset, "measures") for dataset in USR],
        ceilings=expand("results/correlations/{dataset}_ceilings.parquet", dataset=USR),
        reported=multiext("data/paper/", "usr_correlations.csv", "comperdial_rows.yaml"),
    output:
        table_of("table_{number}"),
        html=report(
            "results/tables/table_{number}.html",
            caption="../report/usr_numbered_table.rst",
            category="The paper's tables",
        ),
    log:
        "logs/render/table_{number}.log",
    wildcard_constraints:
        number="06|16",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        target=lambda wildcards: config["evaluation"]["target"],
        not_run=lambda wildcards: not_run(USR),
        titles=lambda wildcards: json.dumps({name: title(name) for name in USR}),
        judges=lambda wildcards: judge_metrics(USR),
        code=code("report.paper_tables"),
    message:
        "Render the paper's Table {wildcards.number}"
    shell:
        "comperdial render paper-table {input.correlations:q} --ceilings {input.ceilings:q} --number {wildcards.number:q} "
        "--output {params.stem:q} --target={params.target:q} --not-run {params.not_run:q} --titles {params.titles:q} "
        "--judges {params.judges:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule benchmarks_short_table:
    input:
        "data/paper/benchmarks.csv",
    output:
        table_of("table_01"),
        html=report("results/tables/table_01.html", caption="../report/table_01.rst", category="The paper's tables"),
    log:
        "logs/render/table_01.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        code=code("report.paper_short"),
    message:
        "Render the paper's Table 01"
    shell:
        "comperdial render benchmarks-short --output {params.stem:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule example_short_table:
    input:
        lambda wildcards: rating_files(numbered_dataset(wildcards)),
        contexts=lambda wildcards: f"data/tables/{numbered_dataset(wildcards)}/contexts.parquet",
        personas=lambda wildcards: f"data/tables/{numbered_dataset(wildcards)}/personas.parquet",
    output:
        table_of("{before}table_02"),
        html=report(
            "results/tables/{before}table_02.html", caption="../report/table_02.rst", category="The paper's tables"
        ),
    log:
        "logs/render/{before}table_02.log",
    wildcard_constraints:
        before=before_numbers(),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=subpath(input.contexts, parent=True),
        simulated=lambda wildcards: simulated(numbered_dataset(wildcards)),
        code=code("report.paper_short"),
    message:
        "Render the paper's Table 02 ({output.html})"
    shell:
        "comperdial render example-short --tables {params.tables:q} --output {params.stem:q} {params.simulated:q} "
        "--made-from {input:q} --code {params.code:q} 2> {log:q}"


rule metric_outputs_table:
    input:
        "data/paper/metric_outputs.csv",
    output:
        table_of("table_14"),
        html=report("results/tables/table_14.html", caption="../report/table_14.rst", category="The paper's tables"),
    log:
        "logs/render/table_14.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        metrics=lambda wildcards: json.dumps(
            {name: without(entry, "datasets") for name, entry in config["metrics"].items()}
        ),
        code=code("report.paper_short", *(f"metrics.{kind}" for kind in kinds())),
    message:
        "Render the paper's Table 14"
    shell:
        "comperdial render metric-outputs --metrics {params.metrics:q} --output {params.stem:q} "
        "--made-from {input:q} --code {params.code:q} 2> {log:q}"


rule paper_tables:
    input:
        paper_table_files(),
        expand("results/tables/{dataset}_{kind}.html", dataset=RATED, kind=WORTH),
