"""Print the page that `dvc plots` fills in, with Snakemake's copy of Vega, since DVC's own page loads it from the network."""

import sys
from pathlib import Path

import snakemake.assets

folder = Path(snakemake.assets.__file__).parent / "data"
scripts = "".join(
    f"<script>{(folder / name / f'{name}.js').read_text(encoding='utf-8')}</script>\n"
    for name in ("vega", "vega-lite", "vega-embed")
)
sys.stdout.write(
    '<!DOCTYPE html>\n<html><head><meta charset="utf-8">{refresh_tag}<title>DVC plots</title>\n'
    + scripts
    + "</head><body>{plot_divs}</body></html>\n"
)
