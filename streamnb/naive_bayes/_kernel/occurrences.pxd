from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.coins cimport Coins


cdef class AbsentWords:
    cdef Coins* coins  # of each class; those past the last are ready for classes to come
    cdef uint64_t n_classes, capacity
    cdef reserve(self, uint64_t n_classes)
    cdef Coins* _of(self, class_index) except NULL
    cdef _fill(self, histograms, messages)
