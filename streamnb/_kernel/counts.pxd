from libc.stdint cimport uint64_t

from streamnb._kernel.table cimport Table


cdef class CountStore:
    cdef Table table
    cdef readonly dict views
    cdef public object max_tokens
    cdef public object evicted_tokens
    cdef public double evicted_mass
    cdef object __weakref__
    cdef _fill(self, Table* table, frozen, uint64_t n_classes)
    cdef keep(self, kept)
