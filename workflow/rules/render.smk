# Tables, figures and pages: one rule for each form; which there are, each declares itself.


rule table:
    input:
        unpack(asked(JOBS.inputs_of)),
    output:
        multiext("results/{name}", *TABLE_FORMATS),
        html=report(
            "results/{name}.html",
            caption="../report/artifact.rst",
            category=asked(JOBS.category_of),
        ),
    log:
        "logs/table/{name}.log",
    wildcard_constraints:
        name=JOBS.stems_of("table"),
    params:
        job=asked(JOBS.job_of),
        caption=asked(JOBS.caption_of),
    message:
        "Render the table {wildcards.name}"
    shell:
        DO


rule figure:
    input:
        unpack(asked(JOBS.inputs_of)),
    output:
        multiext("results/{name}", *FIGURE_FORMATS),
        png=report(
            "results/{name}.png",
            caption="../report/artifact.rst",
            category=asked(JOBS.category_of),
        ),
    log:
        "logs/figure/{name}.log",
    wildcard_constraints:
        name=JOBS.stems_of("figure"),
    params:
        job=asked(JOBS.job_of),
        caption=asked(JOBS.caption_of),
    message:
        "Draw the figure {wildcards.name}"
    shell:
        DO


rule page:
    input:
        unpack(asked(JOBS.inputs_of)),
    output:
        html=report("results/{name}.html", caption="../report/artifact.rst", category=asked(JOBS.category_of)),
    log:
        "logs/page/{name}.log",
    wildcard_constraints:
        name=JOBS.stems_of("page"),
    params:
        job=asked(JOBS.job_of),
        caption=asked(JOBS.caption_of),
    message:
        "Make the page {wildcards.name}"
    shell:
        DO
