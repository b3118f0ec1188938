"""From tables to judgements and from judgements to scores: variants of CPDScore on data sets."""
