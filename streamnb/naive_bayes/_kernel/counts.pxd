# Twin of: streamnb.naive_bayes.statistics.counts

from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.buffers cimport Buffer
from streamnb.naive_bayes._kernel.table cimport Table


cdef class CountStore:
    cdef Table table
    cdef Buffer slots, old_slots, counts, bounds, arena  # what the table points at
    cdef Buffer still_counts, still_slots  # the copies of the last freeze, which the next one reuses
    cdef readonly dict views
    cdef public object lock  # held while the table is read or written; see counts.pyx
    cdef uint64_t moves  # how often rows changed places
    cdef public object max_tokens
    cdef public object evicted_tokens
    cdef public double evicted_mass
    cdef public object fell_short
    cdef object __weakref__
    cdef grow(self, uint64_t rows, uint64_t size)
    cdef widen(self)
    cdef tidy(self)
    cdef drop(self, gone)
    cdef fade_by(self, double factor)
    cdef _point(self)
    cdef bint _take_index(self, sections) except -1
