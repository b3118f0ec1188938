#!/bin/sh
# sh workflow/stage.sh WHAT COMMAND...: print a step and its duration; print the command's output only if it fails.
what=$1
shift
start=$(date +%s)
printf '%s ... ' "$what"
output=$("$@" 2>&1)
status=$?
took=$(($(date +%s) - start))
if [ $status -eq 0 ]; then
  echo "$took s"
else
  echo "failed after $took s"
  printf '%s\n' "$output" >&2
fi
exit $status
