# The notebooks, executed and written as pages; which there are and what each reads: notebook_files.smk.


rule notebook:
    input:
        source=lambda wildcards: f"notebooks/{NOTEBOOKS[wildcards.page][0]}.py",
        reads=lambda wildcards: NOTEBOOKS[wildcards.page][2],
    output:
        "results/{folder}/{page}.provenance.json",
        html=report("results/{folder}/{page}.html", caption="../report/notebook.rst", category="Notebooks"),
    log:
        "logs/render/{folder}_{page}.log",
    wildcard_constraints:
        folder="notebooks|local",
        page=one_of(NOTEBOOKS),
    params:
        dataset=lambda wildcards: NOTEBOOKS[wildcards.page][1],
        target=lambda wildcards: config["evaluation"]["target"],
        source=lambda wildcards: source(NOTEBOOKS[wildcards.page][1]),
        simulated=lambda wildcards: simulated(NOTEBOOKS[wildcards.page][1]),
        settings=lambda wildcards: notebook_settings(wildcards.page),
        code=lambda wildcards: notebook_code(wildcards.page),
    message:
        "Run the notebook {wildcards.page}"
    shell:
        "comperdial render notebook {input.source:q} --dataset {params.dataset:q} --target={params.target:q} "
        "--source={params.source:q} {params.simulated:q} --output {output.html:q} "
        "--made-from {input:q} --code {params.code:q} 2> {log:q}"


rule notebooks:
    input:
        [f"{notebook_folder(page)}/{page}.html" for page in NOTEBOOKS],
