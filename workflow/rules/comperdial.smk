# ComperDial's own tables and figures, for every data set that has what they show.


rule systems_table:
    input:
        scores=score_files,
        tables=lambda wildcards: rating_files(wildcards.dataset),
        systems="data/tables/{dataset}/systems.parquet",
        submissions=lambda wildcards: submission_report(wildcards.dataset),
        code=code("aggregate", "report.systems"),
    output:
        table_of("{dataset}_systems"),
        html=report("results/tables/{dataset}_systems.html", caption="../report/systems.rst", category="Tables"),
    log:
        "logs/render/{dataset}_systems.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=subpath(input.systems, parent=True),
        title=lambda wildcards: title(wildcards.dataset),
        outputs=config["tables"]["systems"],
        target=config["evaluation"]["target"],
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
        not_run=lambda wildcards: not_run([wildcards.dataset]),
        submissions=lambda wildcards, input: " ".join(f"--submissions {path}" for path in input.submissions),
    message:
        "Render the systems of {wildcards.dataset}"
    shell:
        "comperdial render systems {input.scores} --tables {params.tables:q} --output {params.stem} "
        "--title {params.title:q} --outputs {params.outputs} --target {params.target:q} "
        "--source {params.source:q} --not-run {params.not_run:q} {params.submissions} {params.simulated} "
        "--rated {params.rated} 2> {log}"


rule alpha_table:
    input:
        lambda wildcards: rating_files(wildcards.dataset),
        contexts="data/tables/{dataset}/contexts.parquet",
        code=code("ratings", "report.ratings"),
    output:
        table_of("{dataset}_alpha"),
        html=report("results/tables/{dataset}_alpha.html", caption="../report/alpha.rst", category="Tables"),
    log:
        "logs/render/{dataset}_alpha.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=subpath(input.contexts, parent=True),
        title=lambda wildcards: title(wildcards.dataset),
        seed=config["agreement"]["seed"],
        resamples=config["agreement"]["resamples"],
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
        krippendorff=version("krippendorff"),
    message:
        "Render the raters' agreement on {wildcards.dataset}"
    shell:
        "comperdial render alpha --tables {params.tables:q} --output {params.stem} --title {params.title:q} "
        "--seed {params.seed} --resamples {params.resamples} --source {params.source:q} {params.simulated} "
        "--rated {params.rated} 2> {log}"


rule level_differences:
    input:
        multiext(
            "data/tables/{dataset}/",
            "systems.parquet",
            "contexts.parquet",
            "responses.parquet",
            "turn_ratings.parquet",
            "dialogue_ratings.parquet",
        ),
        code=code("ratings", "report.ratings"),
    output:
        table_of("{dataset}_level_differences"),
        html=report(
            "results/tables/{dataset}_level_differences.html",
            caption="../report/level_differences.rst",
            category="Tables",
        ),
    log:
        "logs/render/{dataset}_level_differences.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=subpath(input[0], parent=True),
        title=lambda wildcards: title(wildcards.dataset),
        how_many=config["tables"]["level_differences"],
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
    message:
        "Render the dialogues of {wildcards.dataset} that are rated lower as a whole"
    shell:
        "comperdial render level-differences --tables {params.tables:q} --output {params.stem} "
        "--title {params.title:q} --count {params.how_many} --source {params.source:q} {params.simulated} "
        "--rated {params.rated} 2> {log}"


rule example_table:
    input:
        lambda wildcards: rating_files(wildcards.dataset),
        multiext("data/tables/{dataset}/", "contexts.parquet", "personas.parquet"),
        code=code("report.personas"),
    output:
        table_of("{dataset}_example"),
        html=report("results/tables/{dataset}_example.html", caption="../report/example.rst", category="Tables"),
    log:
        "logs/render/{dataset}_example.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=lambda wildcards: f"data/tables/{wildcards.dataset}",
        title=lambda wildcards: title(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
    message:
        "Render an example of {wildcards.dataset}"
    shell:
        "comperdial render example --tables {params.tables:q} --output {params.stem} --title {params.title:q} "
        "{params.simulated} --rated {params.rated} 2> {log}"


rule counts_table:
    input:
        lambda wildcards: rating_files(wildcards.dataset),
        multiext("data/tables/{dataset}/", "systems.parquet", "contexts.parquet", "responses.parquet"),
        reported="data/paper/annotation_counts.csv",
        code=code("report.comperdial"),
    output:
        table_of("{dataset}_counts"),
        html=report("results/tables/{dataset}_counts.html", caption="../report/counts.rst", category="Tables"),
    log:
        "logs/render/{dataset}_counts.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        tables=lambda wildcards: f"data/tables/{wildcards.dataset}",
        title=lambda wildcards: title(wildcards.dataset),
        source=lambda wildcards: source(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        rated=lambda wildcards: rated_levels(wildcards.dataset),
    message:
        "Count what of {wildcards.dataset} was rated"
    shell:
        "comperdial render counts --tables {params.tables:q} --output {params.stem} --title {params.title:q} "
        "--source {params.source:q} {params.simulated} --rated {params.rated} 2> {log}"
