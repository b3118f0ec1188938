# Figures of judges and of smaller benchmarks, for every rated data set that has what they show.


rule plot_judge_agreement:
    input:
        scores=agreement_scores,
        judgements=lambda wildcards: turn_judgements(wildcards.dataset),
        tables=lambda wildcards: figure_tables(wildcards.dataset),
    output:
        figure_of("{dataset}_judge_agreement"),
        "results/figures/{dataset}_judge_agreement.csv",
        png=report(
            "results/figures/{dataset}_judge_agreement.png",
            caption="../report/plot_judge_agreement.rst",
            category="Figures",
        ),
    log:
        "logs/render/{dataset}_plot_judge_agreement.log",
    params:
        shared=lambda wildcards: plot_options("judge_agreement", wildcards.dataset),
        ratings=lambda wildcards: rating_options(wildcards.dataset),
        drawn=drawn_options(),
        judges=lambda wildcards: judge_outputs(wildcards.dataset),
        outputs=lambda wildcards: agreement_metrics(wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.plots.judge_agreement", "report.plots.data"),
    message:
        "Draw the agreement of judges, metrics and people on {wildcards.dataset}"
    shell:
        "comperdial render plot-judge-agreement {input.scores:q} {params.shared:q} {params.ratings:q} {params.drawn:q} "
        "--judges {params.judges:q} --judgements {input.judgements:q} --outputs {params.outputs:q} {params.simulated:q} "
        "--made-from {input:q} --code {params.code:q} 2> {log:q}"


rule plot_curves:
    input:
        curves="results/correlations/{dataset}_curves.parquet",
        power="results/correlations/{dataset}_power.parquet",
    output:
        figure_of("{dataset}_curves"),
        "results/figures/{dataset}_curves.csv",
        png=report("results/figures/{dataset}_curves.png", caption="../report/plot_curves.rst", category="Figures"),
    log:
        "logs/render/{dataset}_plot_curves.log",
    params:
        shared=lambda wildcards: plot_options("curves", wildcards.dataset),
        outputs=lambda wildcards: outputs_of("curves", wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        coefficient=config["evaluation"]["curves"]["coefficient"],
        code=code("report.plots.curves", "schema"),
    message:
        "Draw the learning curves of {wildcards.dataset}"
    shell:
        "comperdial render plot-curves {input.curves:q} --power {input.power:q} {params.shared:q} --outputs {params.outputs:q} "
        "--coefficient {params.coefficient:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule plots:
    input:
        [path for dataset in RATED for path in plots_of(dataset)],
