# The paper's numbered tables that describe a data set: how much was rated, an example, where the levels differ.


rule level_differences:
    input:
        lambda wildcards: numbered_tables(wildcards, "systems", "contexts", "responses"),
    output:
        table_of("{before}table_13"),
        html=report(
            "results/tables/{before}table_13.html",
            caption="../report/level_differences.rst",
            category="The paper's tables",
        ),
    log:
        "logs/render/{before}table_13.log",
    wildcard_constraints:
        before=before_numbers(),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=lambda wildcards: f"data/tables/{numbered_dataset(wildcards)}",
        title=lambda wildcards: title(numbered_dataset(wildcards)),
        how_many=config["tables"]["level_differences"],
        source=lambda wildcards: source(numbered_dataset(wildcards)),
        simulated=lambda wildcards: simulated(numbered_dataset(wildcards)),
        rated=lambda wildcards: rated_levels(numbered_dataset(wildcards)),
        code=code("ratings", "report.ratings"),
    message:
        "Render dialogues that are rated lower as a whole ({output.html})"
    shell:
        "comperdial render level-differences --tables {params.tables:q} --output {params.stem:q} "
        "--title={params.title:q} --count {params.how_many:q} --source={params.source:q} {params.simulated:q} "
        "--rated {params.rated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule example_table:
    input:
        lambda wildcards: numbered_tables(wildcards, "contexts", "personas"),
    output:
        table_of("{before}table_12"),
        html=report(
            "results/tables/{before}table_12.html", caption="../report/example.rst", category="The paper's tables"
        ),
    log:
        "logs/render/{before}table_12.log",
    wildcard_constraints:
        before=before_numbers(),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=lambda wildcards: f"data/tables/{numbered_dataset(wildcards)}",
        title=lambda wildcards: title(numbered_dataset(wildcards)),
        simulated=lambda wildcards: simulated(numbered_dataset(wildcards)),
        rated=lambda wildcards: rated_levels(numbered_dataset(wildcards)),
        code=code("report.personas"),
    message:
        "Render an example ({output.html})"
    shell:
        "comperdial render example --tables {params.tables:q} --output {params.stem:q} --title={params.title:q} "
        "{params.simulated:q} --rated {params.rated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule counts_table:
    input:
        lambda wildcards: numbered_tables(wildcards, "systems", "contexts", "responses"),
        reported="data/paper/annotation_counts.csv",
    output:
        table_of("{before}table_08"),
        html=report(
            "results/tables/{before}table_08.html", caption="../report/counts.rst", category="The paper's tables"
        ),
    log:
        "logs/render/{before}table_08.log",
    wildcard_constraints:
        before=before_numbers(),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=lambda wildcards: f"data/tables/{numbered_dataset(wildcards)}",
        title=lambda wildcards: title(numbered_dataset(wildcards)),
        source=lambda wildcards: source(numbered_dataset(wildcards)),
        simulated=lambda wildcards: simulated(numbered_dataset(wildcards)),
        rated=lambda wildcards: rated_levels(numbered_dataset(wildcards)),
        code=code("report.comperdial"),
    message:
        "Count what was rated ({output.html})"
    shell:
        "comperdial render counts --tables {params.tables:q} --output {params.stem:q} --title={params.title:q} "
        "--source={params.source:q} {params.simulated:q} --rated {params.rated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
