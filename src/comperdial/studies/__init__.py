"""Functions of the studies whose tables have a shape of their own; ``studies/NAME/study.yaml`` declares them."""
