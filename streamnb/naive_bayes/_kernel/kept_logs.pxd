# Twin of: nothing; a logarithm that is kept is the one that the plain twin computes
#
# Logarithms of sums per class. A message changes the sums of one class, so with many classes nearly all
# logarithms are those of the message before. Each is kept beside its argument and computed again whenever the
# argument is another one: whatever changes a sum (learning, unlearning, merging, fading, eviction, new names of
# classes) need not know that a logarithm is kept.

from libc.math cimport log, rint
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

cdef enum:
    TOGETHER = 64  # sums that are compared with their last values in one call


cdef struct KeptLogs:  # by place among the active classes
    double* of  # -1, which is no sum, before the first one
    double* logs


cdef inline void keep_logs(
    KeptLogs* kept, const double* sums, double pseudo, const int64_t* active, uint64_t S, bint all_active
) noexcept nogil:
    """Bring `kept.logs` to ``log(sum + pseudo)`` of each active class; the sums are not negative."""
    cdef double[TOGETHER] smoothed
    cdef double* of
    cdef uint64_t first, j, n = 0, end = 0
    while end < S:
        first = end
        n = min(S - first, <uint64_t>TOGETHER)
        end = first + n
        if all_active:  # then the sums are in order, and the compiler adds several at a time
            for j in range(n):
                smoothed[j] = sums[first + j] + pseudo
        else:
            for j in range(n):
                smoothed[j] = sums[active[first + j]] + pseudo
        of = kept.of + first
        if memcmp(smoothed, of, n * sizeof(double)) == 0:
            continue
        for j in range(n):
            if of[j] != smoothed[j]:
                of[j], kept.logs[first + j] = smoothed[j], log(smoothed[j])


cdef inline bint is_exact(double total) noexcept nogil:
    """The twin of `streamnb.naive_bayes.statistics.counts.is_exact`."""
    return total < <double>(<uint64_t>1 << 45) and rint(256.0 * total) == 256.0 * total
