# Twin of: nothing; the memory that the twins of statistics per class have in common

from libc.stdint cimport uint64_t


cdef class PerClass:
    cdef double* columns  # of `capacity` numbers each; those past the last class are 0, for classes to come
    cdef uint64_t n_columns, n_classes, capacity
    cdef int reserve(self, uint64_t n_classes) except -1
    cdef _point(self)
    cdef clear(self)
    cdef bint is_taught(self)
    cdef _fill(self, columns)
    cdef list _column(self, uint64_t column)
    cdef uint64_t _class(self, index) except? 0
