# The heads, in C: the twins of `streamnb.naive_bayes.posterior.calibrated_head` and `streamnb.naive_bayes.posterior.odds`. Constants come from there.

from libc.math cimport INFINITY, exp, log, rint, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


cdef struct HeadConstants:
    double evidence_rate
    double meta_rate
    double offset_rate
    double eta_low
    double eta_high
    double clip
    double pseudo_messages
    double square_start
    double eta_square_start


cdef struct Normal:  # SteadyNormal
    double* n
    double* s
    double* ss
    double variance_min


cdef struct Head:  # CalibratedHead, and what it makes of the message in hand
    uint64_t n_text_views
    uint64_t n_features
    double* weights
    double* weight_squares
    double* offsets
    double* offset_squares
    double eta
    double eta_squares
    Normal length
    Normal unknown_share
    double* phi  # feature i of active class j at i * S + j
    double* u
    double* softmax
    double* posterior
    double* r


cdef inline void soften(const double* u, uint64_t n, double* out) noexcept nogil:
    """`posterior.softmax`."""
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


cdef inline void log_odds(const double* u, uint64_t n, double* out) noexcept nogil:
    """`posterior.log_odds`; `out` holds the sums of the values after each, then the odds."""
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
        total += exp(u[c] - top)
    total = 0.0
    for c in range(n):
        if c != t:
            out[c] = u[c] - top - log(total + out[c])
            if u[c] > second:
                second = u[c]
        total += exp(u[c] - top)
    if second == -INFINITY:
        out[t] = INFINITY
        return
    total = 0.0
    for c in range(n):
        if c != t:
            total += exp(u[c] - second)
    out[t] = top - second - log(total)


cdef inline void log_odds_of(const double* posterior, uint64_t n, double* out) noexcept nogil:
    """`posterior.log_odds_of`; `out` holds the sums of the values after each, then the odds."""
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
    const double* p, const int64_t* active, uint64_t S, uint64_t C, double d, double* out
) noexcept nogil:
    """`posterior.never_labelled`."""
    cdef uint64_t c, j
    cdef double share, labelled
    if S == C:
        memcpy(out, p, S * sizeof(double))
        return
    share = 1.0 / (d + <double>C)
    labelled = 1.0 - <double>(C - S) * share
    for c in range(C):
        out[c] = share
    for j in range(S):
        out[active[j]] = labelled * p[j]


cdef inline void centre_and_clip(double* g, uint64_t S, double clip) noexcept nogil:
    """`head.centred_and_clipped`, in place."""
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
    const Normal* normal, double x, const int64_t* active, uint64_t S, const HeadConstants* k, double* g
) noexcept nogil:
    """`SteadyNormal.evidence`."""
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
    """`SteadyNormal.add`."""
    x = rint(x * 1024.0) / 1024.0
    normal.n[c] += weight
    normal.s[c] += weight * x
    normal.ss[c] += weight * x * x


cdef inline double left_of(double square, double factor, double start) noexcept nogil:
    return square * factor if square * factor > start else start


cdef inline void fade(Head* head, uint64_t n_classes, double factor, const HeadConstants* k) noexcept nogil:
    """`CalibratedHead.fade`."""
    cdef uint64_t i
    for i in range(head.n_features):
        head.weight_squares[i] = left_of(head.weight_squares[i], factor, k.square_start)
    for i in range(n_classes):
        head.offset_squares[i] = left_of(head.offset_squares[i], factor, k.square_start)
    head.eta_squares = left_of(head.eta_squares, factor, k.eta_square_start)


cdef inline void form_opinion(Head* head, const int64_t* active, uint64_t S) noexcept nogil:
    """`CalibratedHead.opinion`."""
    cdef uint64_t i, j
    cdef double eps, noise
    for j in range(S):
        head.u[j] = head.offsets[active[j]]
    for i in range(head.n_features):
        for j in range(S):
            head.u[j] += head.weights[i] * head.phi[i * S + j]
    soften(head.u, S, head.softmax)
    eps = 1.0 / (1.0 + exp(-head.eta))
    noise = eps / <double>S
    for j in range(S):
        head.posterior[j] = (1.0 - eps) * head.softmax[j] + noise


cdef inline void learn(
    Head* head, const int64_t* active, uint64_t S, uint64_t y, double weight, const HeadConstants* k
) noexcept nogil:
    """`CalibratedHead.learn`, from the opinion formed last; y stands among the active classes."""
    cdef uint64_t i, j, c, n_of_text = 4 * head.n_text_views
    cdef double w = weight if weight < 1.0 else 1.0
    cdef double eps = 1.0 / (1.0 + exp(-head.eta))
    cdef double p_y = head.posterior[y]
    cdef double rho = (1.0 - eps) * head.softmax[y] / p_y
    cdef double rate = k.evidence_rate / sqrt(<double>head.n_text_views)
    cdef double h
    for j in range(S):
        head.r[j] = w * rho * (head.softmax[j] - (1.0 if j == y else 0.0))
    for i in range(head.n_features):
        h = 0.0
        for j in range(S):
            h += head.r[j] * head.phi[i * S + j]
        head.weight_squares[i] += h * h
        head.weights[i] -= (rate if i < n_of_text else k.meta_rate) * h / sqrt(head.weight_squares[i])
        if i < n_of_text and head.weights[i] < 0.0:
            head.weights[i] = 0.0
    for j in range(S):
        c = active[j]
        head.offset_squares[c] += head.r[j] * head.r[j]
        head.offsets[c] -= k.offset_rate * head.r[j] / sqrt(head.offset_squares[c])
    h = w * (head.softmax[y] - 1.0 / <double>S) / p_y * eps * (1.0 - eps)
    head.eta_squares += h * h
    h = head.eta - h / sqrt(head.eta_squares)
    h = h if h > k.eta_low else k.eta_low
    head.eta = h if h < k.eta_high else k.eta_high
