# Twin of: streamnb.naive_bayes.event_models.multinomial
#
# `Multinomial.log_likelihood`. The order of every sum is the plain one, so that the bits are the same.

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.kept_logs cimport KeptLogs, keep_logs
from streamnb.naive_bayes._kernel.readers cimport LOGS_BITS, Feature, Features, Log, View
from streamnb.naive_bayes._kernel.table cimport Cell, Table

cdef enum:
    SMOOTH_NONE, SMOOTH_LAPLACE, SMOOTH_DIRICHLET

cdef extern from *:
    """
    #define SNB_PSEUDO_MIN 1e-200
    """
    double PSEUDO_MIN "SNB_PSEUDO_MIN"  # `step.pyx` compares it with the plain module's


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


cdef inline void log_likelihood(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    const int64_t* place,
    uint64_t S,
    KeptLogs* kept,
    double* z,
) noexcept nogil:
    """Write ``sum f log phi`` per active class to ``z[S]``.

    `place` has each class's place in `active`, or -1. `kept` has the logarithm of each class's total in this view.
    """
    cdef uint64_t C = table.n_classes
    cdef const double* totals = table.totals + view.store * C
    cdef const double* log_totals = kept.logs
    cdef double n = 0.0, vocabulary = <double>table.known[view.store], pseudo_total = 0.0, n_k, p
    cdef const double* row
    cdef const Feature* feature
    cdef uint64_t i, j
    cdef double one, log_nothing = -INFINITY
    for j in range(S):
        z[j] = 0.0
    for j in range(S):
        n += totals[active[j]]
        if n > 0 and view.smoothing != SMOOTH_DIRICHLET:  # the others only need to know whether there is a token
            break
    if n == 0:
        return
    if view.smoothing == SMOOTH_LAPLACE:
        pseudo_total = view.pseudo * vocabulary
        log_nothing = log_count(view, 0.0)
    elif view.smoothing == SMOOTH_DIRICHLET:
        pseudo_total = view.pseudo
    keep_logs(kept, totals, pseudo_total, active, S, S == C)
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
