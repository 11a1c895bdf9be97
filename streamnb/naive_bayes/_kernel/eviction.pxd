# Twin of: streamnb.naive_bayes.statistics.counts

from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.table cimport Table


cdef rarest(const Table* table, uint64_t n, list worths)
