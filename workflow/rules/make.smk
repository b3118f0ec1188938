# One rule for each artifact that is declared in the package as files: tables of data, scores, judgements, correlations. What each
# is made of, what its job is told and what runs is said there; `snakemake --list` names them.

for artifact in JOBS.artifacts.values():

    rule:
        name:
            artifact.rule
        input:
            unpack(JOBS.inputs(artifact)),
        output:
            **{name: temp(path) if artifact.temporary else path for name, path in artifact.outputs.items()},
        log:
            artifact.log,
        wildcard_constraints:
            **JOBS.constraints(artifact),
        params:
            job=JOBS.job(artifact),
        message:
            "".join(f"{{wildcards.{wildcard}}}: " for wildcard in artifact.wildcards) + artifact.about
        shell:
            DO
