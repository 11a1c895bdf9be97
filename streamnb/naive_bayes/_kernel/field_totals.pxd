# Twin of: streamnb.naive_bayes.statistics.field_totals

from libc.stdint cimport int64_t

from streamnb.naive_bayes._kernel.per_class cimport PerClass


cdef struct FieldSums:  # of one field
    double* totals  # per class
    int64_t states


cdef class FieldTotal(PerClass):
    cdef FieldSums sums  # points at the column
