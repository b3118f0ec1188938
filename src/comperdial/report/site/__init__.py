"""One page a data set, which opens without a network: its results, and each response with all that was said of it."""
