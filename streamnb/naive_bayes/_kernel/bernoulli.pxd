# Twin of: streamnb.naive_bayes.event_models.bernoulli
#
# The evidence of words that are present or absent, and of flags that are true or false. The order of every sum
# is the plain one, so that the bits are the same.

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t, uint8_t, uint64_t

from streamnb.naive_bayes._kernel.absent_words cimport all_absent
from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.field_totals cimport FieldSums
from streamnb.naive_bayes._kernel.multinomial cimport log_count
from streamnb.naive_bayes._kernel.readers cimport Feature, Features, View
from streamnb.naive_bayes._kernel.table cimport Table


cdef inline void log_bernoulli(
    const Table* table,
    const Features* features,
    const View* view,
    uint64_t v,
    const int64_t* active,
    uint64_t S,
    double* log_totals,
    double* present,
    double* certain,
    double* z,
) noexcept nogil:
    """Write the sum of `Bernoulli.parts` per active class to ``z[S]``.

    `log_totals`, `present` and `certain` have room for S numbers each.
    """
    cdef uint64_t known = 0, vocabulary = table.known[view.store], without = 0, i, j
    cdef double n, rest, others
    cdef bint alike = view.without == view.pseudo
    cdef const double* row
    cdef const Feature* feature
    for j in range(S):
        log_totals[j] = log(view.histograms[active[j]].messages + view.pseudo + view.without)
        z[j] = present[j] = certain[j] = 0.0
    for i in range(features.ends[v], features.ends[v + 1]):
        feature = features.items + i
        if feature.row < 0:
            if not view.skips_unknown:
                for j in range(S):
                    z[j] += log_count(view, 0.0) - log_totals[j]
            continue
        known += 1
        row = open_row(table, feature.row)
        for j in range(S):
            n = view.histograms[active[j]].messages - row[active[j]]
            rest = n + view.without
            if rest > 0:
                present[j] += (log_count(view, n) if alike else log(rest)) - log_totals[j]
            else:
                certain[j] += 1.0
            z[j] += log_count(view, row[active[j]]) - log_totals[j]
        close_row(table, feature.row)
    if vocabulary == known:
        return
    for j in range(S):
        others = all_absent(view.histograms + active[j], vocabulary, view.without, &without)
        others = others - <double>(vocabulary - without) * log_totals[j] - present[j]
        if <double>without > certain[j]:
            z[j] += -INFINITY
        elif not 0.0 < others:
            z[j] += others


cdef inline void add_flag(
    const Table* table,
    const Feature* feature,
    bint is_true,
    const FieldSums* field,
    const View* view,
    const int64_t* active,
    uint64_t S,
    double* z,
) noexcept nogil:
    """Add the evidence of one flag per active class to ``z[S]``: the twin of `Bernoulli.flag_parts`."""
    cdef double pseudo = view.pseudo if is_true else view.without, total, count
    cdef const double* row = NULL
    cdef uint64_t j
    if field == NULL or field.states == 0:
        return
    if feature.row >= 0:
        row = open_row(table, feature.row)
    for j in range(S):
        total = field.totals[active[j]] + view.pseudo + view.without
        count = pseudo if row == NULL else row[active[j]] + pseudo
        z[j] += log(count) - log(total) if total > 0 and count > 0 else -INFINITY
    if row != NULL:
        close_row(table, feature.row)


cdef inline bint is_true_flag(const uint8_t* token, uint64_t size) noexcept nogil:
    """Return whether a flag's token ends in ``=true``; the only other ending is ``=false``."""
    return size >= 5 and token[size - 2] == c"u"
