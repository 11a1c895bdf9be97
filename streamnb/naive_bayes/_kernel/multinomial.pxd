# Twin of: streamnb.naive_bayes.event_models.multinomial
#
# `Multinomial.token_odds` and `against_rest` in one pass, and `Multinomial.log_likelihood`. The order of every
# sum is the plain one, so that the bits are the same.

from libc.math cimport INFINITY, fabs, log, pow
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.readers cimport LOGS_BITS, Feature, Features, Log, View
from streamnb.naive_bayes._kernel.table cimport Cell, Table

cdef enum:
    SMOOTH_NONE, SMOOTH_LAPLACE, SMOOTH_DIRICHLET

cdef enum:
    VIEW_FEATURES = 4  # x, its square-law twin, and both with rare tokens shrunk; `step.pyx` compares it


cdef extern from *:
    """
    #define SNB_PSEUDO_MIN 1e-200
    """
    double PSEUDO_MIN "SNB_PSEUDO_MIN"  # `step.pyx` compares it with the plain module's


cdef struct Constants:  # of the plain module
    double length_exponent
    double rare_tokens
    double square_law_scale
    double rare_square_law_scale


cdef inline double log_count(const View* view, double count) noexcept nogil:
    """Return ``log(count + alpha)``, cached: most tokens are rare, so few arguments cover most calls.

    Faded counts are not cached: they differ from one message to the next.
    """
    cdef double smoothed = count + view.pseudo
    cdef uint64_t bits
    cdef Log* kept
    if view.fades:
        return log(smoothed)
    memcpy(&bits, &smoothed, sizeof(double))
    kept = view.logs + (bits * <uint64_t>0x9E3779B97F4A7C15 >> (64 - LOGS_BITS))
    if kept.of != smoothed:
        kept.of, kept.log = smoothed, log(smoothed)
    return kept.log


cdef inline void against_rest(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    uint64_t S,
    const Constants* k,
    double* base,
    double* d,
    double* x,
) noexcept nogil:
    """Write `VIEW_FEATURES` features per active class to `x`; `base` and `d` have room for S numbers each."""
    cdef uint64_t C = table.n_classes
    cdef double pseudo_total = view.pseudo * <double>(table.known[view.store] + 1)
    cdef const double* totals = table.totals + view.store * C
    cdef double* q = x + S
    cdef double* rare_x = q + S
    cdef double* rare_q = rare_x + S
    cdef double n = 0.0, weight = 0.0, n_t, n_c, none, rare, mean, value, g, f, z
    cdef const double* row
    cdef const Feature* feature
    cdef uint64_t i, c, j
    for j in range(S):
        n += totals[active[j]]
    for j in range(S):
        base[j] = log((totals[active[j]] + pseudo_total) / (n - totals[active[j]] + pseudo_total))
    if S == 2:
        against_the_other(table, features, view, v, active, k, base[0], x)
        return
    for j in range(VIEW_FEATURES * S):
        x[j] = 0.0
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0:
            continue
        row = open_row(table, feature.row)
        f = feature.f
        n_t = 0.0
        for c in range(C):
            n_t += row[c]
        mean = 0.0
        none = log(view.pseudo / (n_t + view.pseudo))  # for every class that has not taught it
        for j in range(S):
            n_c = row[active[j]]
            value = (log((n_c + view.pseudo) / (n_t - n_c + view.pseudo)) if n_c > 0.0 else none) - base[j]
            d[j] = value
            mean += value
        close_row(table, feature.row)
        mean /= <double>S
        rare = f * n_t / (n_t + k.rare_tokens)
        weight += f
        for j in range(S):
            value = d[j] - mean
            g = value * fabs(value)
            x[j] += f * value
            q[j] += f * g
            rare_x[j] += rare * value
            rare_q[j] += rare * g
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
    const Constants* k,
    double base,
    double* out,
) noexcept nogil:
    """`against_rest` for two classes: the log odds of one are those of the other, negated."""
    cdef uint64_t C = table.n_classes, c
    cdef double x = 0.0, q = 0.0, rare_x = 0.0, rare_q = 0.0, weight = 0.0, n_t, rare, value, g, z
    cdef const double* row
    cdef const Feature* feature
    cdef uint64_t i
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0:
            continue
        row = open_row(table, feature.row)
        n_t = 0.0
        for c in range(C):
            n_t += row[c]
        value = log((row[active[0]] + view.pseudo) / (row[active[1]] + view.pseudo)) - base
        close_row(table, feature.row)
        rare = feature.f * n_t / (n_t + k.rare_tokens)
        weight += feature.f
        g = value * fabs(value)
        x += feature.f * value
        q += feature.f * g
        rare_x += rare * value
        rare_q += rare * g
    z = pow(1.0 + weight, k.length_exponent)
    out[0] = x / z
    out[2] = k.square_law_scale * q / z
    out[4] = rare_x / z
    out[6] = k.rare_square_law_scale * rare_q / z
    out[1], out[3], out[5], out[7] = 0.0 - out[0], 0.0 - out[2], 0.0 - out[4], 0.0 - out[6]


cdef inline void log_likelihood(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    const int64_t* place,
    uint64_t S,
    double* log_totals,
    double* z,
) noexcept nogil:
    """Write ``sum f log phi`` per active class to ``z[S]``.

    `place` has each class's place in `active`, or -1. `log_totals` has room for S numbers.
    """
    cdef uint64_t C = table.n_classes
    cdef const double* totals = table.totals + view.store * C
    cdef double n = 0.0, vocabulary = <double>table.known[view.store], pseudo_total = 0.0, n_k, p, total
    cdef const double* row
    cdef const Feature* feature
    cdef uint64_t i, j
    cdef double one, log_nothing = -INFINITY
    for j in range(S):
        z[j] = 0.0
        n += totals[active[j]]
    if n == 0:
        return
    if view.smoothing == SMOOTH_LAPLACE:
        pseudo_total = view.pseudo * vocabulary
        log_nothing = log_count(view, 0.0)
    elif view.smoothing == SMOOTH_DIRICHLET:
        pseudo_total = view.pseudo
    for j in range(S):
        total = totals[active[j]] + pseudo_total
        log_totals[j] = log(total) if total > 0 else -INFINITY
    if table.sparse and view.smoothing != SMOOTH_NONE and view.pseudo > PSEUDO_MIN:
        above_nothing(table, features, view, v, place, S, n, vocabulary, log_totals, z)
        return
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0 and view.skips_unknown:
            continue
        row = open_row(table, feature.row) if feature.row >= 0 else NULL
        p = 0.0
        if view.smoothing == SMOOTH_LAPLACE:
            if feature.row < 0:
                for j in range(S):
                    z[j] += feature.f * (log_nothing - log_totals[j])
            else:
                for j in range(S):
                    z[j] += feature.f * (log_count(view, row[active[j]]) - log_totals[j])
                close_row(table, feature.row)
            continue
        if view.smoothing == SMOOTH_DIRICHLET:
            n_k = 0.0
            if feature.row >= 0:
                for j in range(S):
                    n_k += row[active[j]]
            p = view.pseudo * ((n_k + view.half) / (n + view.half * (vocabulary + 1.0)))
        for j in range(S):
            one = (row[active[j]] if feature.row >= 0 else 0.0) + p
            z[j] += feature.f * (log(one) - log_totals[j]) if one > 0 else -INFINITY
        if feature.row >= 0:
            close_row(table, feature.row)


cdef inline void above_nothing(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* place,
    uint64_t S,
    double n,
    double vocabulary,
    const double* log_totals,
    double* z,
) noexcept nogil:
    """`log_likelihood` by the counts above 0: what a class has beyond one that has taught no token of the message."""
    cdef bint laplace = view.smoothing == SMOOTH_LAPLACE
    cdef double nothing = 0.0, weight = 0.0, n_k, p = 0.0, log_p = log_count(view, 0.0) if laplace else 0.0
    cdef const Feature* feature
    cdef const Cell* cell
    cdef const Cell* first
    cdef const Cell* end
    cdef uint64_t i, j
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0 and view.skips_unknown:
            continue
        first = end = NULL
        if feature.row >= 0:
            first = table.cells + table.sparse_rows[feature.row].first
            end = first + table.sparse_rows[feature.row].n
        if not laplace:
            n_k, cell = 0.0, first
            while cell < end:
                if place[cell.c] >= 0:
                    n_k += cell.count
                cell += 1
            p = view.pseudo * ((n_k + view.half) / (n + view.half * (vocabulary + 1.0)))
            log_p = log(p)
        weight += feature.f
        nothing += feature.f * log_p
        cell = first
        while cell < end:
            if place[cell.c] >= 0:
                z[place[cell.c]] += feature.f * ((log_count(view, cell.count) if laplace else log(cell.count + p)) - log_p)
            cell += 1
    for j in range(S):
        z[j] += nothing - weight * log_totals[j]
