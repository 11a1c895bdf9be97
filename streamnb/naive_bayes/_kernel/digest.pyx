# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# Twin of: streamnb.base.digest
"""The hashes that a count store's digest adds up, one per token and class, computed without the GIL.

A statement is the bytes that `Digest.add` hashes: view, token, class and count.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.murmur cimport Hash128, murmur
from streamnb.naive_bayes._kernel.table cimport Table, size_of
from streamnb.naive_bayes._kernel.tokenizer cimport grow


cdef class Statements:
    """The statements about a count store's tokens.

    Parameters
    ----------
    heads : list of bytes
        The bytes before the token, by view.
    tails : list of bytes
        The bytes between the token and its count, by class.
    """

    def __cinit__(self, list heads, list tails):
        self.heads, self.tails = b"".join(heads), b"".join(tails)
        self.heads_at, self.tails_at = self.heads, self.tails
        self.head_ends = _ends(heads)
        self.tail_ends = _ends(tails)
        self.longest_head = max(map(len, heads), default=0)
        self.longest_tail = max(map(len, tails), default=0)

    def __dealloc__(self):
        free(self.head_ends)
        free(self.tail_ends)
        free(self.buffer)

    cdef int reserve(self, const Table* table) noexcept nogil:
        """Make room for the longest token's statement, so that `begin` cannot fail; return -1 without memory."""
        cdef uint64_t row, longest = 0
        for row in range(table.rows):
            longest = size_of(table, row) if size_of(table, row) > longest else longest
        longest += self.longest_head + 4 + self.longest_tail + 8
        return grow(<void**>&self.buffer, &self.capacity, longest, 1)

    cdef hashes(self, const Table* table, rows):
        """Return the upper and lower halves of the hashes of some rows' tokens, without a count; needs `reserve`."""
        cdef const int64_t[::1] chosen = rows
        cdef uint64_t[::1] high = np.empty(len(rows), np.uint64)
        cdef uint64_t[::1] low = np.empty(len(rows), np.uint64)
        cdef int64_t i, size
        cdef Hash128 h
        for i in range(chosen.shape[0]):
            size = self.begin(table.bounds, table.arena, chosen[i])
            h = murmur(self.buffer, size)
            high[i], low[i] = h.high, h.low
        return high.base, low.base

    def sum_of(self, sections):
        """Return the sum, modulo 2^128, of the hashes of all counts above 0 in the sections of a count store."""
        bounds, arena = sections["token_bounds"], sections["token_bytes"]
        if "counts" in sections:
            counts = sections["counts"]
            return self._sum_of(bounds, arena, counts.reshape(-1), counts.shape[1], None, None)
        return self._sum_of(bounds, arena, sections["cell_counts"], 0, sections["cell_bounds"], sections["cell_classes"])

    def sum_of_trust(self, sections):
        """Return the sum, modulo 2^128, of the hashes of each token's trust that was learned."""
        cdef const uint64_t[::1] bounds = sections["token_bounds"]
        cdef const uint8_t[::1] arena = sections["token_bytes"]
        cdef const float[:, ::1] trust = sections["token_trust"]
        cdef const uint8_t* at = &arena[0] if arena.shape[0] else NULL
        cdef uint64_t row, i, low = 0, high = 0, rows = trust.shape[0]
        cdef int64_t size = 0
        cdef double[2] numbers
        cdef Hash128 h
        with nogil:
            for row in range(rows):
                if trust[row, 0] == 0 and trust[row, 1] == 0:
                    continue
                size = self.begin(&bounds[0], at, row)
                if size < 0 or grow(<void**>&self.buffer, &self.capacity, size + sizeof(numbers), 1) != 0:
                    size = -1
                    break
                numbers[0], numbers[1] = trust[row, 0], trust[row, 1]
                memcpy(self.buffer + size, numbers, sizeof(numbers))
                h = murmur(self.buffer, size + sizeof(numbers))
                low += h.low
                high += h.high + (low < h.low)
        if size < 0:
            raise MemoryError("no memory for a digest")
        return (int(high) << 64) + int(low)

    def _sum_of(
        self,
        const uint64_t[::1] bounds,
        const uint8_t[::1] arena,
        const double[::1] counts,
        uint64_t C,
        const uint32_t[::1] cells,
        const uint32_t[::1] classes,
    ):
        """Return the sum over rows of C counts or, where `cells` is given, of the cells between two of its bounds."""
        cdef const uint8_t* at = &arena[0] if arena.shape[0] else NULL
        cdef uint64_t row, i, first, last, c, low = 0, high = 0, rows = bounds.shape[0] - 1
        cdef bint sparse = cells is not None
        cdef int64_t size = 0
        cdef Hash128 h
        with nogil:
            for row in range(rows):
                size = self.begin(&bounds[0], at, row)
                if size < 0:
                    break
                first, last = row * C, (row + 1) * C
                if sparse:
                    first, last = cells[row], cells[row + 1]
                for i in range(first, last):
                    if counts[i] != 0:
                        c = classes[i] if sparse else i - first
                        h = murmur(self.buffer, self.end(size, c, counts[i]))
                        low += h.low
                        high += h.high + (low < h.low)
        if size < 0:
            raise MemoryError("no memory for a digest")
        return (int(high) << 64) + int(low)

    cdef int64_t begin(self, const uint64_t* bounds, const uint8_t* arena, uint64_t row) noexcept nogil:
        """Write the head, the token's length and the token; return their size in bytes, or -1 without memory."""
        cdef uint64_t view = bounds[row + 1] & 255, start = bounds[row] >> 8
        cdef uint32_t size = <uint32_t>((bounds[row + 1] >> 8) - start)
        cdef uint64_t first = self.head_ends[view - 1] if view else 0
        cdef uint64_t n = self.head_ends[view] - first
        if grow(<void**>&self.buffer, &self.capacity, n + 4 + size + self.longest_tail + 8, 1) != 0:
            return -1
        memcpy(self.buffer, self.heads_at + first, n)
        memcpy(self.buffer + n, &size, 4)
        memcpy(self.buffer + n + 4, arena + start, size)
        return n + 4 + size

    cdef uint64_t end(self, uint64_t at, uint64_t c, double count) noexcept nogil:
        """Write the class and the count after the token; return the statement's size in bytes."""
        cdef uint64_t first = self.tail_ends[c - 1] if c else 0
        cdef uint64_t n = self.tail_ends[c] - first
        memcpy(self.buffer + at, self.tails_at + first, n)
        memcpy(self.buffer + at + n, &count, 8)
        return at + n + 8


cdef uint64_t* _ends(list parts) except NULL:
    """Return where each part ends when the parts lie end to end."""
    cdef uint64_t* ends = <uint64_t*>calloc(len(parts) + 1, sizeof(uint64_t))
    cdef uint64_t i, at = 0
    if ends == NULL:
        raise MemoryError("no memory for a statement")
    for i in range(len(parts)):
        at += len(parts[i])
        ends[i] = at
    return ends
