#!/bin/sh
# sh workflow/reproduce.sh COMMAND...: run Snakemake by COMMAND for the data sets in the environment's DATASETS, separated by
# spaces (without it: those of params.yaml), and name what to read first. Names reach commands as arguments, never as shell text.
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
echo 'What to read first, and the folders with the rest:'
# Only what exists after the run is named.
show() {
  for path in "$@"; do
    if [ -e "$path" ]; then printf '  %s\n' "$path"; fi
  done
}
for path in $chosen; do
  stem=${path##*/}
  # A file's data set has its name in lower case, letters, digits and underscores only.
  name=$(printf %s "${stem%.*}" | tr A-Z a-z | tr -cs a-z0-9_ _)
  show "results/$name/report.html" "results/local/$name.html" "results/$name"
done
case $chosen in *usr_*) show results/studies/usr/tables/usr.html results/notebooks/06_reading_the_usr_table.html ;; esac
[ -n "$DATASETS" ] || show results/notebooks/01_the_benchmark_at_a_glance.html
show results/studies results/notebooks
case " $chosen " in *' demo '*) echo 'Everything about demo is SIMULATED.' ;; esac
if [ -n "$DATASETS" ]; then
  echo 'Results of data sets that were not chosen are left as earlier runs made them.'
else
  echo 'Real data: make reproduce DATASETS="usr_persona usr_topical"'
fi
