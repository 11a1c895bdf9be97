# Twin of: streamnb.base.digest

from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamnb.naive_bayes._kernel.table cimport Table


cdef class Statements:
    cdef bytes heads, tails  # end to end
    cdef uint64_t* head_ends
    cdef uint64_t* tail_ends
    cdef const uint8_t* heads_at
    cdef const uint8_t* tails_at
    cdef uint64_t longest_head, longest_tail
    cdef uint8_t* buffer
    cdef uint64_t capacity
    cdef int64_t begin(self, const uint64_t* bounds, const uint8_t* arena, uint64_t row) noexcept nogil
    cdef uint64_t end(self, uint64_t at, uint64_t c, double count) noexcept nogil
    cdef int reserve(self, const Table* table) noexcept nogil
    cdef hashes(self, const Table* table, rows)
