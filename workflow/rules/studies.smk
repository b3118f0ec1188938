# Tables and figures declared in studies/NAME/study.yaml and src/comperdial/report/dataset.yaml.

CAPTION = "../report/artifact.rst"


def asked_for(wildcards):
    """Return the arguments that name a table or figure on the command line."""
    of_dataset = f"dataset {wildcards.name} --dataset {wildcards.get('dataset')}"
    return f"{wildcards.study} {wildcards.name}" if "study" in wildcards.keys() else of_dataset


rule table:
    input:
        made_of("tables"),
    output:
        multiext("results/studies/{study}/tables/{name}", ".md", ".tex", ".csv"),
        html=report("results/studies/{study}/tables/{name}.html", caption=CAPTION, category="The papers' tables"),
    log:
        "logs/table/{study}/{name}.log",
    wildcard_constraints:
        study=one_of(STUDIES),
        name=one_of(name for study in STUDIES for name in shown("tables", study)),
    params:
        asked=asked_for,
        code=entry_code("tables"),
        caption=caption("tables"),
    shell:
        "comperdial table {params.asked} --output {output.html} > {log} 2>&1"


use rule table as dataset_table with:
    output:
        multiext("results/{dataset}/tables/{name}", ".md", ".tex", ".csv"),
        html=report("results/{dataset}/tables/{name}.html", caption=CAPTION, category="Tables"),
    log:
        "logs/dataset_table/{dataset}/{name}.log",
    wildcard_constraints:
        dataset=one_of(S.datasets),
        name=one_of(SPECS[DATASET]["tables"]),


rule figure:
    input:
        made_of("figures"),
    output:
        multiext("results/studies/{study}/figures/{name}", ".pdf", ".svg", ".csv"),
        png=report("results/studies/{study}/figures/{name}.png", caption=CAPTION, category="Figures"),
    log:
        "logs/figure/{study}/{name}.log",
    wildcard_constraints:
        study=one_of(STUDIES),
        name=one_of(name for study in STUDIES for name in shown("figures", study)),
    params:
        asked=asked_for,
        code=entry_code("figures"),
        caption=caption("figures"),
    shell:
        "comperdial figure {params.asked} --output {output.png} > {log} 2>&1"


use rule figure as dataset_figure with:
    output:
        multiext("results/{dataset}/figures/{name}", ".pdf", ".svg", ".csv"),
        png=report("results/{dataset}/figures/{name}.png", caption=CAPTION, category="Figures"),
    log:
        "logs/dataset_figure/{dataset}/{name}.log",
    wildcard_constraints:
        dataset=one_of(S.datasets),
        name=one_of(SPECS[DATASET]["figures"]),
