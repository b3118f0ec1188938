# What can be asked for by name: one kind of results of the chosen data sets, or a study.


rule tables:
    input:
        JOBS.targets(category="Tables"),


rule paper_tables:
    input:
        JOBS.targets(category="The paper's tables"),


rule plots:
    input:
        JOBS.targets(category="Figures"),


rule notebooks:
    input:
        JOBS.targets(category="Notebooks"),


rule sites:
    input:
        JOBS.targets(category="Report"),


rule summaries:
    input:
        [f"results/{name}/summary/metrics.json" for name in JOBS.plan.rated if name in JOBS.plan.chosen],


for study in JOBS.studies:

    rule:
        name:
            study
        input:
            JOBS.targets(study=study),
