# Twin of: streamnb.naive_bayes.posterior.against_rest
#
# `token_odds` and `against_rest` in one pass. The order of every sum is the plain one, so that the bits are the same.

from libc.math cimport fabs, log, pow
from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.readers cimport Feature, Features, View
from streamnb.naive_bayes._kernel.table cimport Table

cdef enum:
    VIEW_FEATURES = 4  # x, its square-law twin, and both with rare tokens shrunk; `step.pyx` compares it


cdef struct EvidenceConstants:  # of the plain module
    double length_exponent
    double rare_tokens
    double square_law_scale
    double rare_square_law_scale


cdef inline void odds_of_totals(
    const Table* table, const View* view, const int64_t* active, uint64_t S, double* base
) noexcept nogil:
    """Write the log odds of each class's total against those of the others."""
    cdef double pseudo_total = view.pseudo * <double>(table.known[view.store] + 1)
    cdef const double* totals = table.totals + view.store * table.n_classes
    cdef double n = 0.0
    cdef uint64_t j
    for j in range(S):
        n += totals[active[j]]
    for j in range(S):
        base[j] = log((totals[active[j]] + pseudo_total) / (n - totals[active[j]] + pseudo_total))


cdef inline double odds_of_token(
    const Table* table,
    const Feature* feature,
    const View* view,
    const int64_t* active,
    uint64_t S,
    const EvidenceConstants* k,
    const double* base,
    double* d,
) noexcept nogil:
    """Write a known token's centred log odds to `d`; return its weight, shrunk if it was rarely seen."""
    cdef const double* row
    cdef double n_t = 0.0, mean = 0.0, rare = 0.0, n_c, none
    cdef uint64_t c, j
    if S == 2:
        d[0] = odds_of_two(table, feature, view, active, k, base[0], &rare)
        d[1] = 0.0 - d[0]
        return rare
    row = open_row(table, feature.row)
    for c in range(table.n_classes):
        n_t += row[c]
    none = log(view.pseudo / (n_t + view.pseudo))  # for every class that has not taught it
    for j in range(S):
        n_c = row[active[j]]
        d[j] = (log((n_c + view.pseudo) / (n_t - n_c + view.pseudo)) if n_c > 0.0 else none) - base[j]
        mean += d[j]
    close_row(table, feature.row)
    mean /= <double>S
    for j in range(S):
        d[j] = d[j] - mean
    return feature.f * n_t / (n_t + k.rare_tokens)


cdef inline double odds_of_two(
    const Table* table,
    const Feature* feature,
    const View* view,
    const int64_t* active,
    const EvidenceConstants* k,
    double base,
    double* rare,
) noexcept nogil:
    """Return a known token's log odds for the first of two classes, and write its shrunk weight."""
    cdef const double* row = open_row(table, feature.row)
    cdef double n_t = 0.0, value
    cdef uint64_t c
    for c in range(table.n_classes):
        n_t += row[c]
    value = log((row[active[0]] + view.pseudo) / (row[active[1]] + view.pseudo)) - base
    close_row(table, feature.row)
    rare[0] = feature.f * n_t / (n_t + k.rare_tokens)
    return value


cdef inline void against_rest(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    uint64_t S,
    const EvidenceConstants* k,
    double* base,
    double* d,
    double* x,
    double* trusted,
) noexcept nogil:
    """Write `VIEW_FEATURES` features per active class to `x`; `base` and `d` have room for S numbers each.

    In a store with trust, the evidence of the tokens times their trust is added to `trusted`.
    """
    cdef double* q = x + S
    cdef double* rare_x = q + S
    cdef double* rare_q = rare_x + S
    cdef double weight = 0.0, rare, trust, g, f, z
    cdef const Feature* feature
    cdef uint64_t i, j
    odds_of_totals(table, view, active, S, base)
    if S == 2:
        against_the_other(table, features, view, v, active, k, base[0], x, trusted)
        return
    for j in range(VIEW_FEATURES * S):
        x[j] = 0.0
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0:
            continue
        f = feature.f
        rare = odds_of_token(table, feature, view, active, S, k, base, d)
        weight += f
        for j in range(S):
            g = d[j] * fabs(d[j])
            x[j] += f * d[j]
            q[j] += f * g
            rare_x[j] += rare * d[j]
            rare_q[j] += rare * g
        if table.trusts:
            trust = table.trust[2 * feature.row] * rare
            for j in range(S):
                trusted[j] += trust * d[j]
    z = pow(1.0 + weight, k.length_exponent)
    for j in range(S):
        x[j] = x[j] / z
        q[j] = k.square_law_scale * q[j] / z
        rare_x[j] = rare_x[j] / z
        rare_q[j] = k.rare_square_law_scale * rare_q[j] / z


cdef inline void against_the_other(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    const EvidenceConstants* k,
    double base,
    double* out,
    double* trusted,
) noexcept nogil:
    """`against_rest` for two classes: the log odds of one are those of the other, negated."""
    cdef double x = 0.0, q = 0.0, rare_x = 0.0, rare_q = 0.0, weight = 0.0, rare = 0.0, value, g, z
    cdef double trust = trusted[0] if table.trusts else 0.0
    cdef const Feature* feature
    cdef uint64_t i
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0:
            continue
        value = odds_of_two(table, feature, view, active, k, base, &rare)
        weight += feature.f
        g = value * fabs(value)
        x += feature.f * value
        q += feature.f * g
        rare_x += rare * value
        rare_q += rare * g
        if table.trusts:
            trust += table.trust[2 * feature.row] * rare * value
    z = pow(1.0 + weight, k.length_exponent)
    if table.trusts:
        trusted[0], trusted[1] = trust, 0.0 - trust
    out[0] = x / z
    out[2] = k.square_law_scale * q / z
    out[4] = rare_x / z
    out[6] = k.rare_square_law_scale * rare_q / z
    out[1], out[3], out[5], out[7] = 0.0 - out[0], 0.0 - out[2], 0.0 - out[4], 0.0 - out[6]
