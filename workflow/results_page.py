"""Write the tables of docs/results.md from the published results: USR's reported rows, and the metrics that run here."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.data.catalogue import load_catalogue
from comperdial.report.correlations import MARK
from comperdial.report.render import number
from comperdial.stats.correlation import is_starred

PAGE = Path("docs/results.md")
TITLES = {name: dataset.title for name, dataset in load_catalogue().datasets.items()}


def put(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table between its two markers in the page."""
    page, lines = PAGE.read_text(encoding="utf-8"), [f"| {' | '.join(line)} |" for line in (heads, *rows)]
    table = "\n".join([lines[0], "|:--|" + "--:|" * (len(heads) - 1), *lines[1:]])
    # A function, since texts may contain backslashes.
    PAGE.write_text(
        re.sub(rf"(?<=<!-- {name} -->\n).*?(?=\n<!-- /{name} -->)", lambda _: table, page, flags=re.DOTALL),
        encoding="utf-8",
    )


def marked(row: Any, value: str, star: str = "") -> str:  # noqa: ANN401
    """Return a value with its marks."""
    return number(row[value]) + star + (MARK if row.get("loso_halved") is True else "")


def beside(row: Any) -> str:  # noqa: ANN401
    """Return our value, and the reported one in brackets."""
    star = r"\*" if pd.notna(row["ours"]) and is_starred(row["p"]) else ""
    theirs = r"\*" if row["reported_starred"] is True else ""
    return marked(row, "ours", star) + (f" ({number(row['reported'])}{theirs})" if pd.notna(row["reported"]) else "")


def cells(frame: pd.DataFrame, columns: Sequence[str], write: Callable[[Any], str]) -> pd.DataFrame:
    """Return the texts of a frame: a row for each label, a column for each value of ``columns``."""
    made = frame.assign(text=[write(row) for row in frame.to_dict("records")])
    wide = made.pivot(index="label", columns=columns, values="text")
    places = made[columns].drop_duplicates().itertuples(index=False, name=None)
    return wide.reindex(made["label"].unique())[[p if len(columns) > 1 else p[0] for p in places]].fillna("–")


usr = pd.read_csv("results/studies/usr/tables/usr.csv")
usr = usr[usr["level"] == "turn"]
usr = usr[usr["label"].isin(usr.loc[usr["ours"].notna() & usr["reported"].notna(), "label"])]
texts = cells(usr, ["dataset", "coefficient"], beside)
names = [f"{TITLES[dataset]} {coefficient.title()}" for dataset, coefficient in texts]
put("usr-table", ["Turn level: ours (reported)", *names], texts.reset_index().to_numpy().tolist())

local = pd.read_csv("results/studies/local_metrics/tables/local_metrics.csv")
datasets = local["dataset"].unique()
local = local[(local["coefficient"] == "spearman") & local["figure"]]
texts = cells(local, ["dataset"], lambda row: marked(row, "value"))[[*datasets]]
costs = local.drop_duplicates("label").set_index("label")
texts["s / 1,000"] = costs["seconds"].map(lambda value: number(value, digits=1))
texts["$ / 1,000"] = costs["usd"].map(lambda value: number(value, digits=2))
names = [TITLES.get(name, name) for name in texts]
put("local-metrics-table", ["Spearman, turn level", *names], texts.reset_index().to_numpy().tolist())
