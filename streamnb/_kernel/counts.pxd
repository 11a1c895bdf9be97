from libc.stdint cimport uint64_t

from streamnb._kernel.table cimport Table


cdef class CountStore:
    cdef Table table
    cdef readonly dict views
    cdef readonly object lock  # held by whoever reads or writes the table; see counts.pyx
    cdef uint64_t moves  # how often rows changed their places
    cdef public object max_tokens
    cdef public object evicted_tokens
    cdef public double evicted_mass
    cdef object __weakref__
    cdef _fill(self, Table* table, frozen, uint64_t n_classes)
    cdef keep(self, kept)
