"""Where foreign bytes enter: public files and their catalogue, readers of each format, scores and answers recorded elsewhere."""
