# Tables and figures that depend on no data set: the benchmarks compared and the constraints of personas.

CONSTRAINTS = {"09": "names", "10": "family", "11": "ages"}


rule benchmarks_table:
    input:
        "data/paper/benchmarks.csv",
    output:
        table_of("table_07"),
        html=report("results/tables/table_07.html", caption="../report/benchmarks.rst", category="The paper's tables"),
    log:
        "logs/render/benchmarks.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        code=code("report.comperdial"),
    message:
        "Render the comparison of benchmarks"
    shell:
        "comperdial render benchmarks --output {params.stem:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule constraints_table:
    input:
        file=lambda wildcards: f"{config['personas']['constraints']}/{CONSTRAINTS[wildcards.number]}.csv",
    output:
        table_of("table_{number}"),
        html=report(
            "results/tables/table_{number}.html", caption="../report/constraints.rst", category="The paper's tables"
        ),
    log:
        "logs/render/table_{number}.log",
    wildcard_constraints:
        number="|".join(CONSTRAINTS),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        constraint=lambda wildcards: CONSTRAINTS[wildcards.number],
        code=code("report.personas"),
    message:
        "Render the constraints of personas: {params.constraint}"
    shell:
        "comperdial render {params.constraint:q} {input.file:q} --output {params.stem:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule paper:
    input:
        rules.personas.output,
        rules.benchmarks_table.output,
        expand("results/tables/table_{number}.html", number=CONSTRAINTS),
