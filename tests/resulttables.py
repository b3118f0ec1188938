"""Tables from rows, and the results of invented data sets as the tables of a study read them."""

import json

import pandas as pd

from comperdial import schema

SAME = {"level": "turn", "against": "turn", "target": "overall", "grouping": "pooled", "n": 30}
ABOUT = {"source": "human", "target": "overall", "main_target": None, "labels": {}, "not_run": {}, "judges": {}}


def write_rows(folder, **tables):
    """Write tables, given as rows in the order of each table's columns; return their paths."""
    paths = {}
    for name, rows in tables.items():
        paths[name] = folder / f"{name}.parquet"
        schema.write(paths[name], pd.DataFrame(rows, columns=schema.table(name).columns), name)
    return paths


def correlation(dataset, metric, output, value, **more):
    """Return a row of the table ``correlations``; what is not given is invented."""
    row = dict.fromkeys(schema.table("correlations").columns) | SAME | {"dataset": dataset, "coefficient": "pearson"}
    row |= {"metric": metric, "output": output, "value": value, "low": value - 0.2, "high": value + 0.2, "p": 0.2}
    return row | {"coverage": 1.0, "cut": 0, "signature": metric} | more


def pair(dataset, one, other, difference, p, **more):
    """Return a row of the table ``pairs``; the outputs to compare are given as ``metric:output``."""
    row = dict.fromkeys(schema.table("pairs").columns) | SAME | {"dataset": dataset, "coefficient": "pearson", "p": p}
    for end, name in (("a", one), ("b", other)):
        row[f"metric_{end}"], row[f"output_{end}"] = name.split(":")
    return (
        row | {"difference": difference, "low": difference - 0.1, "high": difference + 0.1, "test": "jackknife"} | more
    )


def write_results(folder, correlations, pairs, **about):
    """Write what a study reads for each data set: its description, correlations and pairs; return the paths by name."""
    inputs = {"about": [], "correlations": [], "pairs": []}
    for dataset in dict.fromkeys(row["dataset"] for row in correlations):
        inputs["about"].append(folder / f"{dataset}.json")
        inputs["about"][-1].write_text(json.dumps(ABOUT | {"dataset": dataset, "title": f"Set {dataset}"} | about))
        for name, rows in (("correlations", correlations), ("pairs", pairs)):
            inputs[name].append(folder / f"{dataset}_{name}.parquet")
            own = [row for row in rows if row["dataset"] == dataset]
            schema.write(inputs[name][-1], pd.DataFrame(own) if own else schema.empty(name), name)
    return inputs
