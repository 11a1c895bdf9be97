# Twin of: nothing; a logarithm that is kept is the one that the plain twin computes
#
# Logarithms of sums per class. A message changes the sums of one class, so with many classes nearly all
# logarithms are those of the message before. Each is kept beside its argument and computed again whenever the
# argument is another one: whatever changes a sum (learning, unlearning, merging, fading, eviction, new names of
# classes) need not know that a logarithm is kept.

from libc.math cimport log, rint
from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.readers cimport Log


cdef inline double kept_log(Log* kept, double x) noexcept nogil:
    """Return ``log(x)``, from the last call if x is the same; x is above 0."""
    if kept.of != x:
        kept.of, kept.log = x, log(x)
    return kept.log


cdef inline bint is_exact(double total) noexcept nogil:
    """The twin of `streamnb.naive_bayes.statistics.counts.is_exact`."""
    return total < <double>(<uint64_t>1 << 45) and rint(256.0 * total) == 256.0 * total
