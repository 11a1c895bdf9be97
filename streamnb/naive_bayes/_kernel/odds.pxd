# Twin of: streamnb.naive_bayes.posterior.odds

from libc.math cimport INFINITY, exp, log, log1p
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.budget cimport DENSE_CLASSES

cdef enum:
    TOGETHER = 32  # probabilities that are compared with `SERIES_MAX` by their largest

cdef extern from *:
    """
    #define SNB_POWER_MIN -746.0
    #define SNB_SERIES_MAX 0x1p-10
    #define SNB_OTHERS_MIN 1e-290
    #define SNB_NEAR_SECOND -50.0
    """
    double POWER_MIN "SNB_POWER_MIN"  # the exponential of anything below is 0
    # `step.pyx` compares these with the plain module's
    double SERIES_MAX "SNB_SERIES_MAX"
    double OTHERS_MIN "SNB_OTHERS_MIN"
    double NEAR_SECOND "SNB_NEAR_SECOND"


cdef inline double largest(const double* u, uint64_t n) noexcept nogil:
    """Return the largest of n numbers; four comparisons at a time, because none waits for another then."""
    cdef double[4] tops
    cdef uint64_t i, j
    for j in range(4):
        tops[j] = -INFINITY
    for i in range(0, n - n % 4, 4):
        for j in range(4):
            tops[j] = u[i + j] if u[i + j] > tops[j] else tops[j]
    for i in range(n - n % 4, n):
        tops[0] = u[i] if u[i] > tops[0] else tops[0]
    for j in range(1, 4):
        tops[0] = tops[j] if tops[j] > tops[0] else tops[0]
    return tops[0]


cdef inline double sum_of_others(const double* values, uint64_t n, uint64_t t) noexcept nogil:
    """The twin of `sum_in_lanes`, of all values but that at t."""
    cdef double[4] lanes
    cdef uint64_t i, j, there = t - t % 4
    for j in range(4):
        lanes[j] = 0.0
    for i in range(0, there, 4):
        for j in range(4):
            lanes[j] += values[i + j]
    for i in range(there, min(there + 4, n)):
        if i != t:
            lanes[i % 4] += values[i]
    for i in range(there + 4, n - n % 4, 4):
        for j in range(4):
            lanes[j] += values[i + j]
    for i in range(max(there + 4, n - n % 4), n):
        lanes[i % 4] += values[i]
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


cdef inline double soften(const double* u, uint64_t n, double* out) noexcept nogil:
    """The twin of `softmax`; returns the largest of `u`."""
    cdef uint64_t j
    cdef double top = largest(u, n), total = 0.0, below
    if top == -INFINITY:
        for j in range(n):
            out[j] = 1.0 / <double>n
        return top
    for j in range(n):
        below = u[j] - top
        out[j] = exp(below) if below >= POWER_MIN else 0.0  # libm takes four times as long to find that it is 0
        total += out[j]
    for j in range(n):
        out[j] = out[j] / total
    return top


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


cdef inline void odds_of_many(
    const double* u, const double* p, double top, uint64_t n, double* scratch, double* out
) noexcept nogil:
    """The twin of `odds_of_many`; `p` is the softmax of `u`, `top` their largest; `scratch` has room for n numbers."""
    cdef uint64_t c, first, end = 0, t = 0
    cdef double second, others, log_top, x
    if top == -INFINITY:
        memcpy(out, u, n * sizeof(double))
        return
    while u[t] != top:
        t += 1
    log_top = log(p[t])
    for c in range(n):
        x = p[c]
        x = x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 3.0 + x * (1.0 / 4.0 + x * (1.0 / 5.0)))))
        out[c] = ((u[c] - top) + log_top) + x
    while end < n:
        first = end
        end = min(n, first + <uint64_t>TOGETHER)
        if largest(p + first, end - first) > SERIES_MAX:  # which is rare
            for c in range(first, end):
                if p[c] > SERIES_MAX and c != t:
                    out[c] = ((u[c] - top) + log_top) - log1p(-p[c])
    others = sum_of_others(p, n, t)
    if others > OTHERS_MIN:
        out[t] = log_top - log(others)
        return
    memcpy(scratch, u, n * sizeof(double))
    scratch[t] = -INFINITY
    second, others = largest(scratch, n), 0.0
    if second == -INFINITY:
        out[t] = INFINITY
        return
    for c in range(n):
        if scratch[c] - second >= NEAR_SECOND:
            others += exp(scratch[c] - second)
    out[t] = top - second - log(others)


cdef inline void log_odds_of_many(const double* posterior, uint64_t n, double* out) noexcept nogil:
    """The twin of `log_odds_of` for many classes; many have the same posterior, whose logarithm is taken once."""
    cdef uint64_t c
    cdef double p, last = -1.0, odds = 0.0, others
    for c in range(n):
        p = posterior[c]
        if p != last:
            last = p
            if p > 0.5:
                others = sum_of_others(posterior, n, c)
                odds = log(p) - log(others) if others > 0.0 else INFINITY
            else:
                odds = log(p / (1.0 - p)) if p > 0.0 else -INFINITY
        out[c] = odds


cdef inline void log_odds_of(const double* posterior, uint64_t n, double* out) noexcept nogil:
    """The twin of `log_odds_of`; `out` first holds the sums of all later values, then the odds."""
    cdef uint64_t c, i
    cdef double others, total = 0.0
    if n > <uint64_t>DENSE_CLASSES:
        log_odds_of_many(posterior, n, out)
        return
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
