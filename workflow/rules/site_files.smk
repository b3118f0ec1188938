# What the pages of data sets are made of, and where they lie; functions only.


def page_folder(dataset):
    """Where pages lie that show a data set's texts: those of fetched ones are not ours to pass on, and stay here."""
    return "results/local" if dataset in PUBLIC else "results/report"


def site_results(dataset):
    """The results that a page shows, each with the option that takes it; none where nobody rated."""
    if dataset not in RATED:
        return []
    tables = [(name, f"results/correlations/{dataset}_{name}.parquet") for name in ("ceilings", "comparisons")]
    return [
        ("correlations", f"results/correlations/{dataset}.parquet"),
        *tables,
        ("alpha", f"results/tables/{dataset}_alpha.csv"),
    ]


def site_outputs(dataset):
    """The scores that the dialogue browser shows: those that are evaluated in detail, so that the page stays small."""
    outputs = detailed_outputs(dataset)
    return ["--outputs", *outputs] if outputs else []


def site_figures(dataset):
    """A data set's own figures."""
    return plots_of(dataset) if dataset in RATED else []


def site_parts():
    """The page's own files that are no modules: its frame, its style, its code."""
    folder = Path("src/comperdial/report/site")
    return sorted(str(path) for suffix in ("html", "css", "js") for path in folder.glob(f"*.{suffix}"))
