# What correlations are worth: other measures, paired tests, power, learning curves.


rule worth_table:
    input:
        found=lambda wildcards: worth(wildcards.dataset, wildcards.kind),
    output:
        table_of("{dataset}_{kind}"),
        html=report("results/tables/{dataset}_{kind}.html", caption="../report/worth_table.rst", category="Tables"),
    log:
        "logs/render/{dataset}_{kind}.log",
    wildcard_constraints:
        kind=one_of(WORTH),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        target=lambda wildcards: target(wildcards.dataset),
        titles=lambda wildcards: titles([wildcards.dataset]),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.comparison_tables"),
    message:
        "Render the {wildcards.kind} of {wildcards.dataset}"
    shell:
        "comperdial render {wildcards.kind:q}-table {input.found:q} --output {params.stem:q} {params.target:q} "
        "--titles {params.titles:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
