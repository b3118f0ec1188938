# Tables, figures and pages: one rule for each form; which there are, each declares itself.


rule table:
    input:
        unpack(asked(JOBS.inputs_of, "results/tables")),
    output:
        multiext("results/tables/{name}", *TABLE_FORMATS),
        html=report(
            "results/tables/{name}.html",
            caption="../report/artifact.rst",
            category=asked(JOBS.category_of, "results/tables"),
        ),
    log:
        "logs/table/{name}.log",
    wildcard_constraints:
        name=JOBS.stems_of("table", "results/tables"),
    params:
        job=asked(JOBS.job_of, "results/tables"),
        caption=asked(JOBS.caption_of, "results/tables"),
    message:
        "Render the table {wildcards.name}"
    shell:
        DO


rule figure:
    input:
        unpack(asked(JOBS.inputs_of, "results/figures")),
    output:
        multiext("results/figures/{name}", *FIGURE_FORMATS),
        png=report(
            "results/figures/{name}.png",
            caption="../report/artifact.rst",
            category=asked(JOBS.category_of, "results/figures"),
        ),
    log:
        "logs/figure/{name}.log",
    wildcard_constraints:
        name=JOBS.stems_of("figure", "results/figures"),
    params:
        job=asked(JOBS.job_of, "results/figures"),
        caption=asked(JOBS.caption_of, "results/figures"),
    message:
        "Draw the figure {wildcards.name}"
    shell:
        DO


rule page:
    input:
        unpack(asked(JOBS.inputs_of, "results")),
    output:
        html=report(
            "results/{name}.html", caption="../report/artifact.rst", category=asked(JOBS.category_of, "results")
        ),
    log:
        "logs/page/{name}.log",
    wildcard_constraints:
        name=JOBS.stems_of("page", "results"),
    params:
        job=asked(JOBS.job_of, "results"),
        caption=asked(JOBS.caption_of, "results"),
    message:
        "Make the page {wildcards.name}"
    shell:
        DO
