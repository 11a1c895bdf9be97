# Twin of: streamnb.naive_bayes.statistics.moments
#
# The order of every sum is the plain one, so that the bits are the same.

from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.per_class cimport PerClass


cdef struct MomentSums:  # of one number, per class
    double* n
    double* mean
    double* squares


cdef class Moments(PerClass):
    cdef MomentSums sums  # points at the columns


cdef inline void add_number(const MomentSums* moments, double x, uint64_t c, double weight) noexcept nogil:
    """The twin of `Moments.add`."""
    cdef double n = moments.n[c] + weight
    cdef double step = x - moments.mean[c]
    cdef double more
    moments.mean[c] = x if moments.n[c] == 0 else moments.mean[c] + step * weight / n
    moments.n[c] = n
    more = weight * step * (x - moments.mean[c])
    moments.squares[c] += more if more > 0.0 else 0.0


cdef inline void fade_numbers(
    const MomentSums* moments, uint64_t n_classes, double factor, double forgotten
) noexcept nogil:
    """The twin of `Moments.fade`."""
    cdef uint64_t c
    cdef double left
    for c in range(n_classes):
        left = factor if moments.n[c] * factor >= forgotten / 2 or factor >= 1.0 else 0.0
        moments.n[c] = moments.n[c] * left
        moments.squares[c] = moments.squares[c] * left
        if moments.n[c] == 0:
            moments.mean[c] = 0.0


cdef inline double pooled_variance(const MomentSums* moments, uint64_t n_classes, double* weight) noexcept nogil:
    """The twin of `Moments.pooled`: return the variance, and in `weight` the summed weights."""
    cdef double n = 0.0, mean = 0.0, squares = 0.0, step, together
    cdef uint64_t c
    for c in range(n_classes):
        if moments.n[c] == 0:
            continue
        step = moments.mean[c] - mean
        together = n + moments.n[c]
        squares += moments.squares[c] + step * step * (n * moments.n[c] / together)
        mean += step * (moments.n[c] / together)
        n = together
    weight[0] = n
    return squares / n if n != 0 else 0.0
