# Twin of: streamnb.naive_bayes.statistics.steady_normal
#
# `step.pyx` reads the constants from the plain module.

from libc.math cimport INFINITY, log, rint
from libc.stdint cimport int64_t, uint64_t


cdef struct NormalConstants:
    double clip
    double pseudo_messages


cdef struct Normal:  # a `SteadyNormal`
    double* n
    double* s
    double* ss
    double variance_min


cdef inline void centre_and_clip(double* g, uint64_t S, double clip) noexcept nogil:
    """The twin of `centred_and_clipped`, in place."""
    cdef double top = -INFINITY, mean = 0.0
    cdef uint64_t j
    for j in range(S):
        top = g[j] if g[j] > top else top
    for j in range(S):
        if top == -INFINITY:
            g[j] = 0.0
        elif g[j] < top - 1e6:
            g[j] = top - 1e6
    if top == -INFINITY:
        return
    for j in range(S):
        mean += g[j]
    mean /= <double>S
    for j in range(S):
        g[j] = g[j] - mean
        g[j] = g[j] if g[j] > -clip else -clip
        g[j] = g[j] if g[j] < clip else clip


cdef inline void normal_evidence(
    const Normal* normal, double x, const int64_t* active, uint64_t S, const NormalConstants* k, double* g
) noexcept nogil:
    """The twin of `SteadyNormal.evidence`."""
    cdef double n0 = k.pseudo_messages, v0 = normal.variance_min
    cdef double m = 0.0, s = 0.0, ss = 0.0, m0, pooled = v0, n, mu, spread, variance
    cdef uint64_t j, c
    x = rint(x * 1024.0) / 1024.0
    for j in range(S):
        m += normal.n[active[j]]
        s += normal.s[active[j]]
        ss += normal.ss[active[j]]
    m0 = s / m if m != 0 else 0.0
    if m != 0:
        pooled = (ss - m * m0 * m0 + n0 * v0) / (m + n0)
        pooled = pooled if pooled > v0 else v0
    for j in range(S):
        c = active[j]
        n = normal.n[c]
        mu = (normal.s[c] + n0 * m0) / (n + n0)
        spread = normal.ss[c] - 2.0 * mu * normal.s[c] + n * mu * mu
        variance = (spread + n0 * (pooled + (m0 - mu) * (m0 - mu))) / (n + n0)
        variance = variance if variance > v0 else v0
        g[j] = -0.5 * log(variance) - (x - mu) * (x - mu) / (2.0 * variance)
    centre_and_clip(g, S, k.clip)


cdef inline void add_to(Normal* normal, double x, uint64_t c, double weight) noexcept nogil:
    """The twin of `SteadyNormal.add`."""
    x = rint(x * 1024.0) / 1024.0
    normal.n[c] += weight
    normal.s[c] += weight * x
    normal.ss[c] += weight * x * x
