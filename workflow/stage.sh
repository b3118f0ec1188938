#!/bin/sh
# sh workflow/stage.sh WHAT COMMAND...: say what is done and how long it took; what the command says, only where it fails.
what=$1
shift
start=$(date +%s)
printf '%s ... ' "$what"
said=$("$@" 2>&1)
status=$?
took=$(($(date +%s) - start))
if [ $status -eq 0 ]; then
  echo "$took s"
else
  echo "failed after $took s"
  printf '%s\n' "$said" >&2
fi
exit $status
