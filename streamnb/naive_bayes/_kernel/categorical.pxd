# Twin of: streamnb.naive_bayes.event_models.categorical
#
# The evidence of a category. The order of every sum is the plain one, so that the bits are the same.

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.field_totals cimport FieldSums
from streamnb.naive_bayes._kernel.multinomial cimport SMOOTH_DIRICHLET, SMOOTH_LAPLACE, log_count
from streamnb.naive_bayes._kernel.readers cimport Feature, View
from streamnb.naive_bayes._kernel.table cimport Table


cdef inline void add_category(
    const Table* table,
    const Feature* feature,
    const FieldSums* field,
    const View* view,
    const int64_t* active,
    uint64_t S,
    double* z,
) noexcept nogil:
    """Add the evidence of one field's value per active class to ``z[S]``; `field` is NULL if no class has taught it."""
    cdef const double* row = NULL
    cdef double n = 0.0, n_v = 0.0, p = 0.0, pseudo_total = 0.0, count
    cdef uint64_t j
    if field == NULL or field.states == 0 or (feature.row < 0 and view.skips_unknown):
        return
    if feature.row >= 0:
        row = open_row(table, feature.row)
    if view.smoothing == SMOOTH_LAPLACE:
        p, pseudo_total = view.pseudo, view.pseudo * <double>field.states
    elif view.smoothing == SMOOTH_DIRICHLET:
        for j in range(S):
            n += field.totals[active[j]]
            n_v += row[active[j]] if row != NULL else 0.0
        p, pseudo_total = view.pseudo * ((n_v + view.half) / (n + view.half * <double>(field.states + 1))), view.pseudo
    for j in range(S):
        count = row[active[j]] if row != NULL else 0.0
        if not count + p > 0:
            z[j] += -INFINITY
        elif view.smoothing == SMOOTH_LAPLACE:
            z[j] += log_count(view, count) - log(field.totals[active[j]] + pseudo_total)
        else:
            z[j] += log(count + p) - log(field.totals[active[j]] + pseudo_total)
    if row != NULL:
        close_row(table, feature.row)
