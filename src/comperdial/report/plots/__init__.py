"""The figures of any data set (``report/dataset.yaml`` declares them), one module and function each: files to a figure."""
