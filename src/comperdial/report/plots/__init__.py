"""Our own figures, one module each: a function ``*_frame`` gives the numbers, ``*_figure`` draws them."""
