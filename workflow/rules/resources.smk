# Every rule gets its resources and its group here, from one table: included last, when all rules are there. Nothing of it makes a
# result stale, and on one machine nothing of it matters but the threads.

from comperdial.judges.services import services

WORKING = [rule for rule in workflow.rules if not rule.norun]

check_names("rules", "rule", [rule.name for rule in WORKING])
check_names("metrics", "metric", list(config["metrics"]))
check_names("services", "service", services())
for working in WORKING:
    allot(working, workflow.resource_settings)
# These run where snakemake runs: what needs the network, which nodes often lack, and what is done in a moment.
workflow.localrules(*(working.name for working in WORKING if entry_of("rules", working.name).get("local")))
