#!/bin/sh
# sh workflow/reproduce.sh COMMAND...: run Snakemake with COMMAND for the space-separated data sets in the environment variable
# DATASETS (default: those in params.yaml), and list what to read first. Names are passed as arguments, never as shell text.
set -f
chosen=${DATASETS:-$(sed -n 's/^datasets: *\[\(.*\)\].*/\1/p' params.yaml | tr , ' ')}
if [ -n "$DATASETS" ]; then
  listed=
  for name in $DATASETS; do
    listed="$listed${listed:+, }\"$(printf %s "$name" | sed 's/[\\"]/\\&/g')\""
  done
  set -- "$@" --config "datasets=[$listed]"
fi
"$@" || exit
echo
echo 'Start with these files; the folders hold the rest:'
# List only files that exist.
show() {
  for path in "$@"; do
    if [ -e "$path" ]; then printf '  %s\n' "$path"; fi
  done
}
for path in $chosen; do
  stem=${path##*/}
  # A file's data set is named after it, in lower case with only letters, digits and underscores.
  name=$(printf %s "${stem%.*}" | tr A-Z a-z | tr -cs a-z0-9_ _)
  show "results/$name/report.html" "results/local/$name.html" "results/$name"
done
case $chosen in *usr_*) show results/studies/usr/tables/usr.html results/notebooks/06_reading_the_usr_table.html ;; esac
[ -n "$DATASETS" ] || show results/notebooks/01_the_benchmark_at_a_glance.html
show results/studies results/notebooks
case " $chosen " in *' demo '*) echo 'All demo results are SIMULATED.' ;; esac
if [ -n "$DATASETS" ]; then
  echo 'Results of other data sets are from earlier runs.'
else
  echo 'Real data: make reproduce DATASETS="usr_persona usr_topical"'
fi
