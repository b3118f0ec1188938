from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/configuration.smk"


configfile: "params.yaml"


include: "workflow/rules/files.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/resources_files.smk"
include: "workflow/rules/shard_files.smk"
include: "workflow/rules/score_files.smk"
include: "workflow/rules/recorded_files.smk"
include: "workflow/rules/llm_evaluators_files.smk"
include: "workflow/rules/judge_files.smk"
include: "workflow/rules/recorded_judge_files.smk"
include: "workflow/rules/evaluate_files.smk"
include: "workflow/rules/paper_table_files.smk"
include: "workflow/rules/figure_files.smk"
include: "workflow/rules/notebook_files.smk"
include: "workflow/rules/site_files.smk"
include: "workflow/rules/llm_tables_files.smk"
include: "workflow/rules/ingest.smk"
include: "workflow/rules/challenge.smk"
include: "workflow/rules/ratings.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/recorded.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/recorded_judge.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/comperdial.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/numbered_tables.smk"
include: "workflow/rules/paper_tables.smk"
include: "workflow/rules/worth_tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/judge_figures.smk"
include: "workflow/rules/notebooks.smk"
include: "workflow/rules/site.smk"
include: "workflow/rules/llm_evaluators.smk"
include: "workflow/rules/llm_evaluators_tables.smk"
include: "workflow/rules/llm_robustness_tables.smk"
include: "workflow/rules/resources.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.notebooks.input,
        rules.summaries.input,
        rules.paper.input,
        rules.paper_tables.input,
        rules.plots.input,
        rules.sites.input,
