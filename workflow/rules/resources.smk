# All rules get their resources and groups here, from one table (profiles/resources.yaml). Included last, when all of them are
# there. Nothing of it makes a result stale, and on one machine nothing of it matters but the threads.

from comperdial.core.errors import UnknownNameError
from comperdial.judges.services import services

RESOURCES = config.get("resources") or {}
# What a retry gets more of: a job that was ended for want of them would be ended again.
GROWING = ("mem_mb", "runtime")
# What is no amount that Snakemake passes on: threads, groups, and where a job runs.
PLACED = ("cores", "group", "together", "local")
# The rules whose jobs differ, each with the section that says how.
DIFFERING = {"score": "metrics", "score_shard": "metrics", "judge": "services", "judge_shard": "services"}


def entry_of(section, name):
    return (RESOURCES.get(section) or {}).get(name) or {}


def allotted_to(rule, wildcards):
    """What one job gets: what is said of its metric or its judge's service goes before its rule's entry, that before `default`."""
    section, metric = DIFFERING.get(rule), wildcards.get("metric")
    named = entry_of("rules", rule)
    if section == "metrics":
        named = named | entry_of(section, metric)
        # One after the other: two models side by side may not fit into a machine's memory.
        if "cores" not in named and JOBS.plan.metrics[metric].runs_model:
            named["cores"] = workflow.cores
    elif section == "services":
        named = named | entry_of(section, JOBS.plan.judged[f"{wildcards.dataset}/{metric}"].judge.service)
    return (RESOURCES.get("default") or {}) | named


def amount(rule, key):
    """How much of something a rule's jobs get, as Snakemake asks it: at each attempt twice as much of what grows."""

    def of(wildcards, attempt):
        # Snakemake takes no "nothing" for a size, where another entry has one.
        value = allotted_to(rule, wildcards).get(key, 1000 if key.endswith("_mb") else None)
        return value * 2 ** (attempt - 1) if key in GROWING and value is not None else value

    return of


def threads_of(rule):
    """The threads of a rule's jobs, as Snakemake asks them: no more than `--cores` says, where that is less."""
    return lambda wildcards: allotted_to(rule, wildcards).get("cores", 1)


def about(wildcards):
    """The data set that a job is about, or the study's results."""
    return wildcards.get("dataset") or (wildcards.get("name") or "all").split("/")[0]


def part_of(rule, wildcards, group, together):
    """Which part of a group a job of scoring belongs to: counted, so that what becomes known later changes no group."""
    same = [
        name
        for name in JOBS.plan.metrics
        if ({**entry_of("rules", rule), **entry_of("metrics", name)}).get("group") == group
    ]
    number = int(wildcards.get("shard", "1").partition("-")[0]) - 1
    return (number * len(same) + same.index(wildcards.metric)) // together


def whole(group, name):
    """All jobs of a group go as one, connected or not, whatever its parts are called; what --group-components says stays.

    Said when a group is asked for, when Snakemake has its settings, by a job on a node too: it is told its targets, not this.
    """
    workflow.parent_groupids[name] = group
    settings = workflow.group_settings
    if group not in settings.group_components:
        settings.group_components = {**settings.group_components, group: 1_000_000}


def group_of(rule):
    """The group of a rule's jobs, as Snakemake asks it; none for a job that goes alone."""

    def of(wildcards):
        said = allotted_to(rule, wildcards)
        if (group := said.get("group")) is None:
            return None
        name = group.replace("{dataset}", about(wildcards))
        if "metric" in wildcards.keys() and "together" in said:
            name += f"-{part_of(rule, wildcards, group, said['together'])}"
        whole(group, name)
        return name

    return of


def allot(working, settings):
    """Give a rule what the table says; what the command line says of it stays (--set-resources, --set-threads)."""
    more = (RESOURCES.get(DIFFERING.get(working.name)) or {}).values()
    entries = [RESOURCES.get("default") or {}, entry_of("rules", working.name), *(entry or {} for entry in more)]
    keys = {key for entry in entries for key in entry if key not in PLACED}
    working.resources.update({key: amount(working.name, key) for key in sorted(keys)})
    working.resources.update(settings._parsed_overwrite_resources.get(working.name, {}))
    if working.name not in settings._parsed_overwrite_threads:
        working.resources["_cores"] = threads_of(working.name)
    if any(entry.get("group") for entry in entries) and not any(entry.get("local") for entry in entries[:2]):
        working.group = group_of(working.name)


def check_names(section, kind, known):
    """An entry of the table that is about nothing is a mistake; a metric may have been taken out of params.yaml."""
    for name in RESOURCES.get(section) or {}:
        if name not in known:
            where = f"profiles/resources.yaml, resources.{section}"
            raise WorkflowError(f"Wrong configuration. {UnknownNameError(kind, name, known, where=where)}")


WORKING = [rule for rule in workflow.rules if not rule.norun]
check_names("rules", "rule", [rule.name for rule in WORKING])
check_names("services", "service", services())
for working in WORKING:
    allot(working, workflow.resource_settings)
# These run where snakemake runs: what needs the network, which nodes often lack, and what is done in a moment.
workflow.localrules(*(working.name for working in WORKING if entry_of("rules", working.name).get("local")))
