"""What every other part uses: errors, files, names, the code hash. Imports nothing else of ours."""
