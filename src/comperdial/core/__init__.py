"""What every other part uses: errors, files, names, the code hash, provenance. Imports nothing else of ours."""
