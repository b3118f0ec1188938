# What single studies compute besides correlations: results/studies/{study}/*.
