# Twin of: streamnb.naive_bayes.posterior.trust
#
# `step.pyx` reads the constants from the plain module. A message's gradients are found before its new tokens may
# evict others, and taken after that, so that nothing has changed if there is no memory for the message.

from libc.math cimport pow, sqrt
from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.against_rest cimport EvidenceConstants, odds_of_token, odds_of_totals
from streamnb.naive_bayes._kernel.readers cimport Feature, Features, View
from streamnb.naive_bayes._kernel.table cimport Table


cdef struct TrustConstants:
    double damping_exponent
    double step_rate
    double squares_start
    double squares_max
    double errors_min
    double low
    double high


cdef inline double damping(double q, const TrustConstants* k) noexcept nogil:
    """The twin of `damping`, from the sum of the squared weights of all tokens."""
    return pow(q, k.damping_exponent) if q > 0.0 else 0.0


cdef inline bint teaches(const double* errors, uint64_t S, double weight, const TrustConstants* k) noexcept nogil:
    """The twin of `teaches`."""
    cdef double total = 0.0, w = weight if weight < 1.0 else 1.0
    cdef uint64_t j
    for j in range(S):
        total += errors[j] * errors[j]
    return total >= k.errors_min * w * w


cdef inline void find_gradients(
    const Table* table,
    Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    uint64_t S,
    const EvidenceConstants* k,
    double damped,
    const double* errors,
    double* base,
    double* d,
) noexcept nogil:
    """The twin of `gradient`, for each known token of a view; `base` and `d` have room for S numbers each."""
    cdef Feature* feature
    cdef double rare, h
    cdef uint64_t i, j
    odds_of_totals(table, view, active, S, base)
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        feature.gradient = 0.0
        if feature.row < 0:
            continue
        rare = odds_of_token(table, feature, view, active, S, k, base, d)
        h = 0.0
        for j in range(S):
            h += errors[j] * d[j]
        feature.gradient = damped * rare * h


cdef inline void take_steps(
    Table* table, const Features* features, uint64_t v, double scale, const TrustConstants* k
) noexcept nogil:
    """The twin of `stepped`, for each token of a view that still has a row."""
    cdef const Feature* feature
    cdef float* held
    cdef double squares, v_t
    cdef uint64_t i
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0:
            continue
        held = table.trust + 2 * feature.row
        squares = held[1] + feature.gradient * feature.gradient * scale
        squares = squares if squares < k.squares_max else k.squares_max
        v_t = held[0] - k.step_rate * feature.gradient / sqrt(k.squares_start + squares / scale)
        v_t = v_t if v_t > k.low else k.low
        held[0], held[1] = <float>(v_t if v_t < k.high else k.high), <float>squares
