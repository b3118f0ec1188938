"""Everything read from outside: the catalogue of public files, readers for each format, and recorded scores and answers."""
