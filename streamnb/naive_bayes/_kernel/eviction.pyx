# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# Twin of: streamnb.naive_bayes.statistics.counts
"""Find the tokens to evict, in the order of the plain `CountStore.evict`.

Rows are ranked by their sum, and equal sums by the hash of the token. The store is at its memory limit when it
evicts, so no memory per row is used: a radix selection passes over the rows several times and counts 16 bits of
their keys at a time, until it has found the key that separates the rows that go from the rows that stay.
"""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from streamnb.naive_bayes._kernel.murmur cimport Hash128, murmur
from streamnb.naive_bayes._kernel.digest cimport Statements
from streamnb.naive_bayes._kernel.table cimport Table

cdef enum:
    BUCKETS = 65536
    LEVELS = 3  # sum, upper half of the hash, lower half
    SPARE = 4096  # surplus rows, which are sorted out at the end


cdef struct Limit:  # the largest keys of the rows that go, level by level
    uint64_t[3] key
    int levels


cdef inline uint64_t key_of(const Table* table, Statements statements, uint64_t row, int level) noexcept nogil:
    """Return the key that ranks a row at a level. A sum is not negative, so its bits sort as it does."""
    cdef uint64_t c, key
    cdef double total = 0.0
    cdef Hash128 h
    if level == 0:
        for c in range(table.n_classes):
            total += table.counts[row * table.n_classes + c]
        memcpy(&key, &total, 8)
        return key
    h = murmur(statements.buffer, <uint64_t>statements.begin(table.bounds, table.arena, row))
    return h.high if level == 1 else h.low


cdef inline int rank(
    const Table* table, Statements statements, uint64_t row, const Limit* limit
) noexcept nogil:
    """Return -1 for a row that goes, 1 for one that stays, 0 for one equal to the limit at every level."""
    cdef int level
    cdef uint64_t key
    for level in range(limit.levels):
        key = key_of(table, statements, row, level)
        if key != limit.key[level]:
            return -1 if key < limit.key[level] else 1
    return 0


cdef inline bint narrow(
    const Table* table, Statements statements, Limit* limit, uint64_t* wanted, uint32_t* counted
) noexcept nogil:
    """Find the limit of the next level among the rows that are equal so far.

    `wanted` becomes the number of rows equal to the limit that have to go. Returns whether at most `SPARE` more
    rows than that are equal to it.
    """
    cdef int level = limit.levels, shift = 48
    cdef uint64_t row, key, bucket, prefix = 0
    while True:
        memset(counted, 0, BUCKETS * sizeof(uint32_t))
        for row in range(table.rows):
            if level > 0 and rank(table, statements, row, limit) != 0:
                continue
            key = key_of(table, statements, row, level)
            if shift == 48 or key >> (shift + 16) == prefix:
                counted[(key >> shift) & 0xFFFF] += 1
        bucket = 0
        while counted[bucket] < wanted[0]:
            wanted[0] -= counted[bucket]
            bucket += 1
        prefix = (prefix << 16) | bucket
        if counted[bucket] <= wanted[0] + SPARE or shift == 0:
            limit.key[level] = (prefix << shift) | ((<uint64_t>1 << shift) - 1)
            limit.levels = level + 1
            return counted[bucket] <= wanted[0] + SPARE
        shift -= 16


cdef rarest(const Table* table, Statements statements, uint64_t n):
    """Return the `n` rows with the smallest sums, rarest first; of equal sums, the smaller hash comes first."""
    cdef Limit limit
    cdef uint64_t row, at = 0, wanted = n
    cdef uint32_t* counted = <uint32_t*>calloc(BUCKETS, sizeof(uint32_t))
    cdef uint64_t room = n + SPARE
    cdef int64_t[::1] rows = np.empty(room, np.int64)
    cdef double[::1] sums = np.empty(room)
    cdef uint64_t key
    cdef bint exact = False
    if counted == NULL or statements.reserve(table) != 0:
        free(counted)
        raise MemoryError("no memory to evict tokens")
    limit.levels = 0
    with nogil:
        while not exact and limit.levels < LEVELS:
            exact = narrow(table, statements, &limit, &wanted, counted)
        free(counted)
        for row in range(table.rows):
            if at < room and rank(table, statements, row, &limit) <= 0:
                key = key_of(table, statements, row, 0)
                memcpy(&sums[at], &key, 8)
                rows[at] = <int64_t>row
                at += 1
    high, low = statements.hashes(table, rows.base[:at])
    return rows.base[np.lexsort((low, high, sums.base[:at]))[:n]]
