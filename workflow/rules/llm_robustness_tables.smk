# The study's tables of perturbations and robustness, what judges are asked, and how dimensions go together.


rule llm_perturbations:
    input:
        [
            path
            for name in [*RECORDED_PAIRS, *PERTURBED]
            for path in study_tables(name, "systems", "contexts", "responses")
        ],
        reported="data/paper/llm_evaluators_perturbations.csv",
    output:
        table_of("llm_evaluators_table_7"),
        html=report(
            "results/tables/llm_evaluators_table_7.html",
            caption="../report/llm_evaluators_table_7.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_table_7.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        recorded=folders(RECORDED_PAIRS),
        made=folders(PERTURBED),
        titles=lambda wildcards: study_titles([*RECORDED_PAIRS, *PERTURBED]),
        code=code("report.llm_evaluators.perturbations", "perturbations.registry"),
    message:
        "Render table 7 of LLM evaluators"
    shell:
        "comperdial render llm-perturbations --recorded {params.recorded:q} --made {params.made:q} --output {params.stem:q} "
        "--titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule llm_ratios:
    input:
        ratios=expand("results/llm_evaluators/{name}_ratios.parquet", name=RECORDED_PAIRS),
        reported="data/paper/llm_evaluators_robustness.csv",
    output:
        table_of("llm_evaluators_table_8"),
        html=report(
            "results/tables/llm_evaluators_table_8.html",
            caption="../report/llm_evaluators_table_8.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_table_8.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        shared=lambda wildcards: study_shared(),
        not_run=lambda wildcards: study_not_run(RECORDED_PAIRS),
        bounds=lambda wildcards: study_bounds(*RECORDED_PAIRS),
        needs=lambda wildcards: study_needs(),
        code=code("report.llm_evaluators.robustness", "perturbations.registry"),
    message:
        "Render table 8 of LLM evaluators"
    shell:
        "comperdial render llm-ratios {input.ratios:q} --output {params.stem:q} {params.shared:q} --not-run {params.not_run:q} "
        "--bounds {params.bounds:q} --needs {params.needs:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule robustness_table:
    input:
        "results/llm_evaluators/{dataset}_perturbed_ratios.parquet",
    output:
        table_of("{dataset}_robustness"),
        html=report(
            "results/tables/{dataset}_robustness.html",
            caption="../report/llm_evaluators_robustness.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/{dataset}_robustness.log",
    wildcard_constraints:
        dataset=one_of(PERTURBABLE),
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        shared=lambda wildcards: study_shared(),
        titles=lambda wildcards: study_titles([perturbed(wildcards.dataset)]),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        bounds=lambda wildcards: study_bounds(perturbed(wildcards.dataset)),
        needs=lambda wildcards: study_needs(),
        code=code("report.llm_evaluators.robustness", "perturbations.registry"),
    message:
        "Render the robustness of metrics on {wildcards.dataset}"
    shell:
        "comperdial render llm-robustness {input:q} --output {params.stem:q} {params.shared:q} --titles {params.titles:q} "
        "{params.simulated:q} --bounds {params.bounds:q} --needs {params.needs:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule llm_questions:
    input:
        questions="src/comperdial/judges/prompts/questions.yaml",
    output:
        table_of("llm_evaluators_table_9"),
        html=report(
            "results/tables/llm_evaluators_table_9.html",
            caption="../report/llm_evaluators_table_9.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_table_9.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        not_asked=lambda wildcards: study_not_asked(),
        variants=lambda wildcards: json.dumps(
            config["judging"]["variants"] if config.get("judging") else {}, sort_keys=True
        ),
        code=code("report.llm_evaluators.questions"),
    message:
        "Render table 9 of LLM evaluators"
    shell:
        "comperdial render llm-questions --variants {params.variants:q} --not-asked {params.not_asked:q} --output {params.stem:q} --made-from {input:q} "
        "--code {params.code:q} 2> {log:q}"


rule llm_figure:
    input:
        lambda wildcards: rated_tables([FIGURE_OF[wildcards.number]]),
        scores=lambda wildcards: panel_files(FIGURE_OF[wildcards.number]),
    output:
        figure_of("llm_evaluators_figure_{number}"),
        "results/figures/llm_evaluators_figure_{number}.csv",
        png=report(
            "results/figures/llm_evaluators_figure_{number}.png",
            caption="../report/llm_evaluators_figure.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_figure_{number}.log",
    wildcard_constraints:
        number="[34]",
    params:
        stem=subpath(output.png, strip_suffix=".png"),
        shared=lambda wildcards: panel_options(FIGURE_OF[wildcards.number]),
        code=code("report.llm_evaluators.figures", "evaluation.interdimensional"),
    message:
        "Draw figure {wildcards.number} of LLM evaluators"
    shell:
        "comperdial render llm-figure {input.scores:q} --output {params.stem:q} {params.shared:q} --number {wildcards.number:q} "
        "--made-from {input:q} --code {params.code:q} 2> {log:q}"


rule llm_evaluators:
    input:
        expand("results/tables/llm_evaluators_table_{number}.html", number=range(1, 10)) if STUDY else [],
        expand("results/tables/llm_evaluators_{name}.html", name=["correlations", "rounds"]) if STUDY else [],
        expand("results/tables/{name}_robustness.html", name=(STUDY.get("perturbed") or {}).get("datasets", [])),
        expand("results/figures/llm_evaluators_figure_{number}.png", number=FIGURE_OF),
