# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# Twin of: streamnb.naive_bayes.statistics.counts
"""Which tokens are let go of: the twin of the order in `streamnb.naive_bayes.statistics.counts.CountStore.evict`.

Rows are ranked by their sum, equals by the hash of the token. A store is at its limit of memory when it asks,
so nothing is kept for each row: the rows are walked over several times, and 16 bits of what ranks them are
counted at a time, until the rank is found that parts those that go from those that stay.
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
    SPARE = 4096  # rows too many that are sorted out at the end


cdef struct Limit:  # of those that go, level by level; inclusive at the last one
    uint64_t[3] key
    int levels


cdef inline uint64_t key_of(const Table* table, Statements statements, uint64_t row, int level) noexcept nogil:
    """What ranks a row at a level; sums are not negative, so their bits are in their order."""
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
    """Below 0: the row goes; above 0: it stays; 0: it is equal to the limit at every level."""
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
    """Find the next level's limit among rows equal so far; whether hardly more than are wanted are within it.

    `wanted` becomes how many of the rows equal to the limit have to go.
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
    """The `n` rows of the smallest sums, rarest first; of equals those of the smaller hash."""
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
        raise MemoryError("no memory to let go of tokens")
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
