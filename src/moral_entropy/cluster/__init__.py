"""The same computations on Dask, for votes that do not fit on one machine. Extra: [cluster].

Items are cut into parts that stay in the workers' memory; each pass runs the kernels of one machine on every part and
sends back sums. Whatever a worker holds can be made again from the files, so a worker that dies costs time only.
"""
