from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/configuration.smk"


configfile: "profiles/resources.yaml"
configfile: "params.yaml"


include: "workflow/rules/jobs.smk"
include: "workflow/rules/make.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/targets.smk"
include: "workflow/rules/resources.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        JOBS.targets(),
        rules.summaries.input,
        rules.personas.output,
