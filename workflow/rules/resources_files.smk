# What a job may use on a cluster, and which jobs go there together: the table `resources` of params.yaml; functions only.

RESOURCES = config.get("resources") or {}
# What a retry gets more of: a job that was ended for want of them would be ended again.
GROWING = ("mem_mb", "runtime")
# What is no amount that Snakemake passes on: threads, groups, and where a job runs.
PLACED = ("cores", "group", "together", "local")
# The wildcards that say which data set a job is about; some hold <data set>/<metric>.
ABOUT = ("dataset", "challenge", "judged", "recorded", "heard", "sharded", "studied", "perturbable", "paired")
# The rules whose jobs differ, each with the section that says how.
DIFFERING = {"score_shard": "metrics", "judge_shard": "services"}


def entry_of(section, name):
    return (RESOURCES.get(section) or {}).get(name) or {}


def allotted(rule, metric=None, service=None):
    """What a job gets: what is said of its metric or its judge's service goes before its rule's entry, that before `default`."""
    told = {"metrics": metric, "services": service}
    section = DIFFERING.get(rule)
    named = entry_of("rules", rule) | (entry_of(section, told[section]) if section is not None else {})
    # One after the other: two models side by side may not fit into a machine's memory.
    if "cores" not in named and section == "metrics" and METRICS[metric].runs_model:
        named["cores"] = workflow.cores
    return (RESOURCES.get("default") or {}) | named


def cores_of(rule, metric=None, service=None):
    """The threads of a job: no more than `--cores` says, where that is less."""
    return allotted(rule, metric, service).get("cores", 1)


def allotted_to(rule, wildcards):
    """What one job of a rule gets."""
    judged = wildcards.get("judged")
    return allotted(rule, wildcards.get("metric"), JUDGED[judged].judge.service if judged in JUDGED else None)


def amount(rule, key):
    """How much of something a rule's jobs get, as Snakemake asks it: at each attempt twice as much of what grows."""

    def of(wildcards, attempt):
        # Snakemake takes no "nothing" for a size, where another entry has one.
        value = allotted_to(rule, wildcards).get(key, 1000 if key.endswith("_mb") else None)
        return value * 2 ** (attempt - 1) if key in GROWING and value is not None else value

    return of


def part_of(wildcards, group, together):
    """Which part of a group a shard's scoring belongs to: counted, so that what becomes known later changes no group."""
    same = [name for name in METRICS if allotted("score_shard", name).get("group") == group]
    number = int(wildcards.shard.partition("-")[0]) - 1
    return (number * len(same) + same.index(wildcards.metric)) // together


def about(wildcards):
    """The data set that a job is about."""
    for name in ABOUT:
        if value := wildcards.get(name):
            return value.split("/")[0]
    return "all"


def whole(group, name):
    """All jobs of a group go as one, connected or not, whatever its parts are called; what --group-components says stays.

    Said when a group is asked for, when Snakemake has its settings, by a job on a node too: it is told its targets, not this.
    """
    workflow.parent_groupids[name] = group
    settings = workflow.group_settings
    if group not in settings.group_components:
        settings.group_components = {**settings.group_components, group: 1_000_000}


def group_of(called):
    """The group of a rule's jobs, as Snakemake asks it; none for a job that goes alone."""

    def of(wildcards):
        said = allotted_to(called, wildcards)
        if (group := said.get("group")) is None:
            return None
        name = group.replace("{dataset}", about(wildcards))
        if called == "score_shard" and "together" in said:
            name += f"-{part_of(wildcards, group, said['together'])}"
        whole(group, name)
        return name

    return of


def entries_of(rule):
    """All entries of the table that can be about a rule, `default` first."""
    more = (RESOURCES.get(DIFFERING.get(rule)) or {}).values()
    return [RESOURCES.get("default") or {}, entry_of("rules", rule), *(entry or {} for entry in more)]


def allot(working, settings):
    """Give a rule what the table says; what the command line says of it stays (--set-resources, --set-threads)."""
    entries = entries_of(working.name)
    keys = {key for entry in entries for key in entry if key not in PLACED}
    working.resources.update({key: amount(working.name, key) for key in sorted(keys)})
    working.resources.update(settings._parsed_overwrite_resources.get(working.name, {}))
    if any("cores" in entry for entry in entries[1:]) and working.name not in settings._parsed_overwrite_threads:
        working.resources["_cores"] = lambda wildcards: allotted_to(working.name, wildcards).get("cores", 1)
    if any(entry.get("group") for entry in entries) and not any(entry.get("local") for entry in entries[:2]):
        working.group = group_of(working.name)


def check_names(section, kind, known):
    """An entry of the table that is about nothing is a mistake."""
    for name in RESOURCES.get(section) or {}:
        if name not in known:
            where = f"params.yaml, resources.{section}"
            raise WorkflowError(f"Wrong configuration. {UnknownNameError(kind, name, known, where=where)}")
