# Twin of: streamnb.naive_bayes.event_models.gaussian
#
# The log density of a number. The order of every sum is the plain one, so that the bits are the same.

from libc.math cimport INFINITY, exp, isnan, log, log1p
from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.moments cimport MomentSums, pooled_variance

cdef enum:
    BY_CLASS, BY_ALL, BY_GIVEN  # whose variance


cdef struct Normals:  # a `Gaussian`'s parameters, and the constants of the plain module
    int variance
    double given
    double pseudo_observations
    double robust
    double variance_min
    double broad


cdef inline double log_normal(double x, double mean, double variance) noexcept nogil:
    return -0.5 * log(variance) - (x - mean) * (x - mean) / (2.0 * variance)


cdef inline double log_sum(double a, double b) noexcept nogil:
    cdef double top = b if b > a else a
    return top if top == -INFINITY else top + log1p(exp((b if b < a else a) - top))


cdef inline double at_least(double variance, double least) noexcept nogil:
    return least if least > variance else variance


cdef inline void add_log_density(
    const MomentSums* moments,
    uint64_t n_classes,
    const Normals* normals,
    double x,
    const int64_t* active,
    uint64_t S,
    double* z,
) noexcept nogil:
    """Add the log density per active class to ``z[S]``; a missing number adds nothing."""
    cdef double k = normals.pseudo_observations, n = 0.0, n_shared = 0.0, squares = 0.0, pooled_mean = 0.0
    cdef double pooled, variance, value, broad = 0.0
    cdef uint64_t c, j
    if isnan(x):
        return
    pooled = pooled_variance(moments, n_classes, &n)
    if n == 0 or pooled < normals.variance_min:
        return
    for j in range(S):
        c = active[j]
        pooled_mean += moments.mean[c] * (moments.n[c] / n)
        n_shared += moments.n[c]
        squares += moments.squares[c]
    variance = normals.given
    if normals.variance == BY_ALL:
        variance = at_least((squares + k * pooled) / (n_shared + k), normals.variance_min)
    if normals.robust != 0:
        broad = log(normals.robust) + log_normal(x, pooled_mean, normals.broad * pooled)
    for j in range(S):
        c = active[j]
        if normals.variance == BY_CLASS:
            variance = pooled
            if moments.n[c] + k > 0:
                variance = at_least((moments.squares[c] + k * pooled) / (moments.n[c] + k), normals.variance_min)
        value = log_normal(x, moments.mean[c] if moments.n[c] != 0 else pooled_mean, variance)
        if normals.robust != 0:
            value = log_sum(log1p(-normals.robust) + value, broad)
        z[j] += value
