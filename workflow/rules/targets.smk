# Named targets: one kind of results of the chosen data sets, or a study.


rule tables:
    input:
        [f"results/{one}/tables/{name}.html" for one in S.chosen for name in shown("tables", DATASET, one)],


rule plots:
    input:
        [f"results/{one}/figures/{name}.png" for one in S.chosen for name in shown("figures", DATASET, one)],


rule pages:
    input:
        [page_of(dataset) for dataset in S.chosen],


rule notebooks:
    input:
        [path for name, path in NOTEBOOKS.items() if PAGES[name][1] in S.chosen],


for study in STUDIES:

    rule:
        name:
            study
        input:
            study_results(study),
