from libc.stdint cimport uint64_t

from streamnb._kernel.table cimport Table


cdef class CountStore:
    cdef Table table
    cdef readonly dict views
    cdef object __weakref__
    cdef _fill(self, Table* table, frozen, uint64_t n_classes)
    cdef compact(self)
