# Our own figures, for every rated data set that has what they show.


rule plot_heatmap:
    input:
        correlations="results/correlations/{dataset}.parquet",
        ceilings="results/correlations/{dataset}_ceilings.parquet",
    output:
        figure_of("{dataset}_heatmap"),
        "results/figures/{dataset}_heatmap.csv",
        png=report("results/figures/{dataset}_heatmap.png", caption="../report/plot_heatmap.rst", category="Figures"),
    log:
        "logs/render/{dataset}_plot_heatmap.log",
    params:
        shared=lambda wildcards: plot_options("heatmap", wildcards.dataset),
        outputs=lambda wildcards: outputs_of("heatmap", wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.plots.heatmap", "report.tables", "schema"),
    message:
        "Draw the correlations of {wildcards.dataset}"
    shell:
        "comperdial render plot-heatmap {input.correlations:q} --ceilings {input.ceilings:q} {params.shared:q} "
        "--outputs {params.outputs:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule plot_scatter:
    input:
        scores=scores_for("scatter"),
        correlations="results/correlations/{dataset}.parquet",
        tables=lambda wildcards: figure_tables(wildcards.dataset),
    output:
        figure_of("{dataset}_scatter"),
        "results/figures/{dataset}_scatter.csv",
        png=report("results/figures/{dataset}_scatter.png", caption="../report/plot_scatter.rst", category="Figures"),
    log:
        "logs/render/{dataset}_plot_scatter.log",
    params:
        shared=lambda wildcards: plot_options("scatter", wildcards.dataset),
        ratings=lambda wildcards: rating_options(wildcards.dataset),
        outputs=lambda wildcards: outputs_of("scatter", wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.plots.scatter", "report.plots.data", "report.tables"),
    message:
        "Draw scores against ratings of {wildcards.dataset}"
    shell:
        "comperdial render plot-scatter {input.scores:q} --correlations {input.correlations:q} {params.shared:q} "
        "{params.ratings:q} --outputs {params.outputs:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule plot_slope:
    input:
        scores=scores_for("slope"),
        tables=lambda wildcards: figure_tables(wildcards.dataset),
    output:
        figure_of("{dataset}_slope"),
        "results/figures/{dataset}_slope.csv",
        png=report("results/figures/{dataset}_slope.png", caption="../report/plot_slope.rst", category="Figures"),
    log:
        "logs/render/{dataset}_plot_slope.log",
    params:
        shared=lambda wildcards: plot_options("slope", wildcards.dataset),
        ratings=lambda wildcards: rating_options(wildcards.dataset),
        outputs=lambda wildcards: outputs_of("slope", wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.plots.slope", "report.plots.data"),
    message:
        "Draw the rankings of the systems of {wildcards.dataset}"
    shell:
        "comperdial render plot-slope {input.scores:q} {params.shared:q} {params.ratings:q} --outputs {params.outputs:q} "
        "{params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule plot_length_bias:
    input:
        scores=scores_for("length_bias"),
        tables=lambda wildcards: figure_tables(wildcards.dataset),
    output:
        figure_of("{dataset}_length_bias"),
        "results/figures/{dataset}_length_bias.csv",
        png=report(
            "results/figures/{dataset}_length_bias.png", caption="../report/plot_length_bias.rst", category="Figures"
        ),
    log:
        "logs/render/{dataset}_plot_length_bias.log",
    params:
        shared=lambda wildcards: plot_options("length_bias", wildcards.dataset),
        ratings=lambda wildcards: rating_options(wildcards.dataset),
        drawn=drawn_options(),
        outputs=lambda wildcards: outputs_of("length_bias", wildcards.dataset),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.plots.length_bias", "report.plots.data"),
    message:
        "Draw how metrics depend on the length of responses of {wildcards.dataset}"
    shell:
        "comperdial render plot-length-bias {input.scores:q} {params.shared:q} {params.ratings:q} {params.drawn:q} "
        "--outputs {params.outputs:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
