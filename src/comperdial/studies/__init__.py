"""Studies: what papers want measured, what they reported, and how their tables and figures look. A folder each."""
