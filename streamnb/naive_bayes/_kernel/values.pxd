# Twin of: streamnb.naive_bayes.features.values

from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.readers cimport Given
from streamnb.naive_bayes._kernel.table cimport Table


cdef class BlockReader:
    cdef readonly int kind  # BLOCK_CATEGORIES, BLOCK_FLAGS or BLOCK_NUMBERS
    cdef readonly uint64_t group, store
    cdef readonly object view
    cdef object reader, views
    cdef str field
    cdef tuple fields
    cdef frozenset taken
    cdef dict known  # name to statistics: the model's own while a batch runs
    cdef dict fresh  # the same for names that the batch brings
    cdef uint64_t n_classes  # when the batch began
    cdef read(self, columns, uint64_t i, Given* given, list names)
    cdef bint _read_common(self, columns, uint64_t i, Given* given, list names) except -1
    cdef bint _take(self, name, value, Given* given, list names) except -1
    cdef _read_any(self, columns, uint64_t i, Given* given, list names)
    cdef void* find(self, str name, bint learned, uint64_t n_classes) except? NULL
    cdef begin(self, model)
    cdef adopt(self)
    cdef fade(self, const Table* table, double factor)
    cdef recount(self, const Table* table)
