# Twin of: streamnb.naive_bayes.statistics.counts

from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.buffers cimport Buffer
from streamnb.naive_bayes._kernel.table cimport Table


cdef class CountStore:
    cdef Table table
    cdef Buffer slots, old_slots, counts, trust, sparse_rows, cells, bounds, arena  # what the table points at
    cdef Buffer still_counts, still_trust, still_classes, still_bounds, still_slots  # the last freeze, which the next one reuses
    cdef readonly dict views
    cdef public object lock  # held while the table is read or written; see counts.pyx
    cdef uint64_t moves  # how often rows changed places
    cdef public object worths  # of each view, for eviction
    cdef public object max_tokens
    cdef public object bytes_max
    cdef public object evicted_tokens
    cdef public double evicted_mass
    cdef public object fell_short
    cdef object __weakref__
    cdef grow(self, uint64_t rows, uint64_t size, uint64_t cells)
    cdef _place(self, Buffer cells)
    cdef _pack(self, uint64_t cells)
    cdef widen(self)
    cdef _widen_rows(self)
    cdef _make_sparse(self)
    cdef _shrink(self)
    cdef tidy(self)
    cdef drop(self, gone)
    cdef fade_by(self, double factor)
    cdef _point(self)
    cdef _trust_shown(self, Buffer buffer)
    cdef bint _take_index(self, sections) except -1
