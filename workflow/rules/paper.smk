# Tables and figures that depend on no data set: the benchmarks compared, the constraints of personas, the two diagrams.


rule benchmarks_table:
    input:
        "data/paper/benchmarks.csv",
        code=code("report.comperdial"),
    output:
        table_of("benchmarks"),
        html=report("results/tables/benchmarks.html", caption="../report/benchmarks.rst", category="Tables"),
    log:
        "logs/render/benchmarks.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
    message:
        "Render the comparison of benchmarks"
    shell:
        "comperdial render benchmarks --output {params.stem} 2> {log}"


rule constraints_table:
    input:
        file=lambda wildcards: f"{config['personas']['constraints']}/{wildcards.constraint}.csv",
        code=code("report.personas"),
    output:
        table_of("{constraint}"),
        html=report("results/tables/{constraint}.html", caption="../report/constraints.rst", category="Tables"),
    log:
        "logs/render/{constraint}.log",
    wildcard_constraints:
        constraint="names|family|ages",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
    message:
        "Render the constraints of personas: {wildcards.constraint}"
    shell:
        "comperdial render {wildcards.constraint} {input.file:q} --output {params.stem} 2> {log}"


rule diagrams:
    input:
        multiext("data/paper/", "benchmarks.csv", "annotation_counts.csv"),
        code=code("report.diagrams", "report.figures", "report.comperdial"),
    output:
        multiext("results/figures/pipeline", ".pdf", ".svg"),
        multiext("results/figures/techniques", ".pdf", ".svg"),
        pipeline=report("results/figures/pipeline.png", caption="../report/pipeline.rst", category="Figures"),
        techniques=report("results/figures/techniques.png", caption="../report/techniques.rst", category="Figures"),
    log:
        "logs/render/diagrams.log",
    params:
        folder=subpath(output.pipeline, parent=True),
        matplotlib=version("matplotlib"),
    message:
        "Draw the two diagrams"
    shell:
        "comperdial render diagrams --output {params.folder} 2> {log}"


rule paper:
    input:
        rules.personas.output,
        rules.benchmarks_table.output,
        expand("results/tables/{constraint}.html", constraint=["names", "family", "ages"]),
        rules.diagrams.output,
