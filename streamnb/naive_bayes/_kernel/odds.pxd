# Twin of: streamnb.naive_bayes.posterior.odds

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


cdef inline void soften(const double* u, uint64_t n, double* out) noexcept nogil:
    """The twin of `softmax`."""
    cdef uint64_t j
    cdef double top = -INFINITY, total = 0.0
    for j in range(n):
        top = u[j] if u[j] > top else top
    if top == -INFINITY:
        for j in range(n):
            out[j] = 1.0 / <double>n
        return
    for j in range(n):
        out[j] = exp(u[j] - top)
        total += out[j]
    for j in range(n):
        out[j] = out[j] / total


cdef inline void log_odds(const double* u, uint64_t n, double* powers, double* out) noexcept nogil:
    """The twin of `log_odds`; `out` first holds the sums of all later values, then the odds.

    `powers` has room for n numbers.
    """
    cdef uint64_t c, i, t = 0
    cdef double top, second = -INFINITY, total = 0.0
    if n == 0:
        return
    for c in range(1, n):
        if u[c] > u[t]:
            t = c
    top = u[t]
    if top == -INFINITY:
        memcpy(out, u, n * sizeof(double))
        return
    for i in range(n):
        c = n - 1 - i
        out[c] = total
        powers[c] = exp(u[c] - top)
        total += powers[c]
    total = 0.0
    for c in range(n):
        if c != t:
            out[c] = u[c] - top - log(total + out[c])
            if u[c] > second:
                second = u[c]
        total += powers[c]
    if second == -INFINITY:
        out[t] = INFINITY
        return
    total = 0.0
    for c in range(n):
        if c != t:
            total += exp(u[c] - second)
    out[t] = top - second - log(total)


cdef inline void log_odds_of(const double* posterior, uint64_t n, double* out) noexcept nogil:
    """The twin of `log_odds_of`; `out` first holds the sums of all later values, then the odds."""
    cdef uint64_t c, i
    cdef double others, total = 0.0
    for i in range(n):
        c = n - 1 - i
        out[c] = total
        total += posterior[c]
    total = 0.0
    for c in range(n):
        others = total + out[c]
        total += posterior[c]
        if others == 0.0:
            out[c] = INFINITY
        else:
            out[c] = log(posterior[c]) - log(others) if posterior[c] > 0 else -INFINITY


cdef inline void never_labelled(
    const double* p, const int64_t* active, uint64_t S, const int64_t* declared, uint64_t D, uint64_t C, double d,
    double* out
) noexcept nogil:
    """The twin of `never_labelled`."""
    cdef uint64_t c, j
    cdef double share = 0.0, labelled
    if S == C:
        memcpy(out, p, S * sizeof(double))
        return
    if S + D > 0:
        share = 1.0 / (d + <double>S + <double>D)
    labelled = 1.0 - <double>D * share
    for c in range(C):
        out[c] = 0.0
    for j in range(D):
        out[declared[j]] = share
    for j in range(S):
        out[active[j]] = labelled * p[j]
