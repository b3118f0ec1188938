# Into which shards large jobs are cut; functions only.

# Responses to a shard, about.
SHARD_SIZE = config.get("sharding", {}).get("size", 65_536)


def shards_of(dataset):
    """The shards of a data set as <number>-of-<count>: how many there are is known once its tables are there."""
    with checkpoints.shards.get(sharded=dataset).output[0].open() as file:
        many = json.load(file)["shards"]
    return [f"{number}-of-{many}" for number in range(1, many + 1)]


def shard_files(kind, name):
    """The shards of what a metric makes of a data set, named <data set>/<metric>."""
    return [f"results/shards/{kind}/{name}/{shard}.parquet" for shard in shards_of(name.split("/")[0])]


def words(shards):
    """Shards as a command has them, for the shell to spell out: thousands of names are more than a command may be long."""
    if len(shards) == 1:
        return shlex.join(shards)
    return f"{shlex.quote(os.path.dirname(shards[0]))}/{{1..{len(shards)}}}-of-{len(shards)}.parquet"


def merging(shards, output):
    """The command that makes one table of shards of scores: a single one is that table, byte for byte."""
    if len(shards) == 1:
        return f"cp {words(shards)} {shlex.quote(output)}"
    return f"comperdial merge {words(shards)} --output {shlex.quote(output)}"


def merging_judged(shards, judgements, output):
    """The same for scores of a judge with their judgements."""
    if len(shards) == 1:
        return f"{merging(shards, output.scores)} && {merging(judgements, output.judgements)}"
    made = ["--output", output.scores, "--output-judgements", output.judgements]
    return f"comperdial judge merge --scores {words(shards)} --judgements {words(judgements)} {shlex.join(made)}"


def shard_option(shard):
    """A shard as commands take it."""
    return ["--shard", shard.replace("-of-", "/")]
