# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# Twin of: streamnb.naive_bayes.statistics.counts
"""Find the tokens to evict, in the order of the plain `CountStore.evict`.

Rows are ranked by their sum, and equal sums by age. The store is at its memory limit when it evicts, so no memory
per row is used: a radix selection passes over the rows several times and counts 16 bits of their keys at a time,
until it has found the key that separates the rows that go from the rows that stay.
"""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from streamnb.naive_bayes._kernel.cells cimport sum_of_row
from streamnb.naive_bayes._kernel.table cimport Table, view_of

cdef enum:
    BUCKETS = 65536
    LEVELS = 2  # sum and age
    SPARE = 4096  # surplus rows, which are sorted out at the end
    VIEWS = 256


cdef struct Limit:  # the largest keys of the rows that go, level by level
    double[VIEWS] worths  # by which the sums of each view's rows are multiplied
    uint64_t[2] key
    int levels


cdef inline uint64_t key_of(
    const Table* table, uint64_t row, uint64_t position, const Limit* limit, int level
) noexcept nogil:
    """Return the key that ranks a row at a level; `position` is the number of older rows of its view."""
    cdef uint64_t key
    cdef double total
    if level == 1:
        return (position << 32) // table.known[view_of(table, row)]
    total = sum_of_row(table, row) * limit.worths[view_of(table, row)]
    memcpy(&key, &total, 8)  # a sum is not negative, so its bits sort as it does
    return key


cdef inline int rank(const Table* table, uint64_t row, uint64_t position, const Limit* limit) noexcept nogil:
    """Return -1 for a row that goes, 1 for one that stays, 0 for one equal to the limit at every level."""
    cdef int level
    cdef uint64_t key
    for level in range(limit.levels):
        key = key_of(table, row, position, limit, level)
        if key != limit.key[level]:
            return -1 if key < limit.key[level] else 1
    return 0


cdef inline bint narrow(const Table* table, Limit* limit, uint64_t* wanted, uint32_t* counted) noexcept nogil:
    """Find the limit of the next level among the rows that are equal so far.

    `wanted` becomes the number of rows equal to the limit that have to go. Returns whether at most `SPARE` more
    rows than that are equal to it.
    """
    cdef int level = limit.levels, shift = 48
    cdef uint64_t row, key, bucket, position, prefix = 0
    cdef uint64_t[VIEWS] older
    while True:
        memset(counted, 0, BUCKETS * sizeof(uint32_t))
        memset(older, 0, sizeof(older))
        for row in range(table.rows):
            position = older[view_of(table, row)]
            older[view_of(table, row)] += 1
            if level > 0 and rank(table, row, position, limit) != 0:
                continue
            key = key_of(table, row, position, limit, level)
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


cdef rarest(const Table* table, uint64_t n, list worths):
    """Return the `n` rows with the smallest sums times their view's worth; of equal ones the oldest first.

    At most one row per view has the same age, so no more than `SPARE` rows are equal at both levels.
    """
    cdef Limit limit
    cdef uint64_t row, position, at = 0, wanted = n
    cdef uint64_t[VIEWS] older
    cdef uint32_t* counted = <uint32_t*>calloc(BUCKETS, sizeof(uint32_t))
    cdef uint64_t room = n + SPARE
    cdef int64_t[::1] rows = np.empty(room, np.int64)
    cdef uint64_t[::1] ages = np.empty(room, np.uint64)
    cdef uint64_t[::1] views = np.empty(room, np.uint64)
    cdef double[::1] sums = np.empty(room)
    cdef uint64_t key
    cdef bint exact = False
    if counted == NULL:
        raise MemoryError("no memory to evict tokens")
    limit.levels = 0
    for row in range(table.n_views):
        limit.worths[row] = worths[row]
    with nogil:
        while not exact and limit.levels < LEVELS:
            exact = narrow(table, &limit, &wanted, counted)
        free(counted)
        memset(older, 0, sizeof(older))
        for row in range(table.rows):
            position = older[view_of(table, row)]
            older[view_of(table, row)] += 1
            if at < room and rank(table, row, position, &limit) <= 0:
                key = key_of(table, row, position, &limit, 0)
                memcpy(&sums[at], &key, 8)
                ages[at] = key_of(table, row, position, &limit, 1)
                views[at], rows[at] = view_of(table, row), <int64_t>row
                at += 1
    return rows.base[np.lexsort((views.base[:at], ages.base[:at], sums.base[:at]))[:n]]
