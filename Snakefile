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


onstart:
    # Snakemake weighs all waiting jobs anew every second, and after each finished job once more a second
    # (snakemake/snakemake#3744): in a long run that is most of a core. Jobs on this machine need no limit a second.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


rule all:
    default_target: True
    input:
        JOBS.targets(),
        rules.summaries.input,
        rules.personas.output,
