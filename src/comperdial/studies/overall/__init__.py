"""One ranking of metrics over all real data sets."""
