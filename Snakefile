from snakemake.utils import min_version

min_version("9.27")


configfile: "params.yaml"


include: "workflow/rules/files.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/score_files.smk"
include: "workflow/rules/recorded_files.smk"
include: "workflow/rules/judge_files.smk"
include: "workflow/rules/recorded_judge_files.smk"
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


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.notebooks.input,
        rules.summaries.input,
        rules.paper.input,
