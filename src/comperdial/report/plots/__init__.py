"""The figures of every data set (declared in ``report/dataset.yaml``); each function turns files into a figure."""
