from snakemake.utils import min_version

min_version("9.27")


configfile: "params.yaml"


include: "workflow/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/scores.smk"
include: "workflow/rules/judges.smk"
include: "workflow/rules/results.smk"
include: "workflow/rules/study_results.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/targets.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        [dataset_results(dataset) for dataset in S.chosen],
        [study_results(study, S.chosen) for study in STUDIES],
        [path for name, path in NOTEBOOKS.items() if PAGES[name][1] in S.chosen],
        "results/personas/personas.json",
