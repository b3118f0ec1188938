# Tables and figures, which studies/NAME/study.yaml and src/comperdial/report/dataset.yaml declare.


rule table:
    input:
        made_of("tables"),
    output:
        multiext("results/studies/{study}/tables/{name}", ".md", ".tex", ".csv"),
        html=report(
            "results/studies/{study}/tables/{name}.html",
            caption="../report/artifact.rst",
            category="The papers' tables",
        ),
    log:
        "logs/table/{study}/{name}.log",
    wildcard_constraints:
        study=one_of(STUDIES),
        name=one_of(name for study in STUDIES for name in shown("tables", study)),
    params:
        code=entry_code("tables"),
        caption=caption("tables"),
    shell:
        "comperdial table {wildcards.study} {wildcards.name} --output {output.html} > {log} 2>&1"


rule figure:
    input:
        made_of("figures"),
    output:
        multiext("results/studies/{study}/figures/{name}", ".pdf", ".svg", ".csv"),
        png=report("results/studies/{study}/figures/{name}.png", caption="../report/artifact.rst", category="Figures"),
    log:
        "logs/figure/{study}/{name}.log",
    wildcard_constraints:
        study=one_of(STUDIES),
        name=one_of(name for study in STUDIES for name in shown("figures", study)),
    params:
        code=entry_code("figures"),
        caption=caption("figures"),
    shell:
        "comperdial figure {wildcards.study} {wildcards.name} --output {output.png} > {log} 2>&1"


rule dataset_table:
    input:
        made_of("tables"),
    output:
        multiext("results/{dataset}/tables/{name}", ".md", ".tex", ".csv"),
        html=report("results/{dataset}/tables/{name}.html", caption="../report/artifact.rst", category="Tables"),
    log:
        "logs/dataset_table/{dataset}/{name}.log",
    wildcard_constraints:
        dataset=one_of(S.datasets),
        name=one_of(SPECS[DATASET]["tables"]),
    params:
        code=entry_code("tables"),
        caption=caption("tables"),
    shell:
        "comperdial table dataset {wildcards.name} --dataset {wildcards.dataset} --output {output.html} > {log} 2>&1"


rule dataset_figure:
    input:
        made_of("figures"),
    output:
        multiext("results/{dataset}/figures/{name}", ".pdf", ".svg", ".csv"),
        png=report("results/{dataset}/figures/{name}.png", caption="../report/artifact.rst", category="Figures"),
    log:
        "logs/dataset_figure/{dataset}/{name}.log",
    wildcard_constraints:
        dataset=one_of(S.datasets),
        name=one_of(SPECS[DATASET]["figures"]),
    params:
        code=entry_code("figures"),
        caption=caption("figures"),
    shell:
        "comperdial figure dataset {wildcards.name} --dataset {wildcards.dataset} --output {output.png} > {log} 2>&1"
