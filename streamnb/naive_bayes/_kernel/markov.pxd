# Twin of: streamnb.naive_bayes.event_models.markov, streamnb.naive_bayes.posterior.string_evidence
#
# `probabilities`, and the sums over the longest strings of a message.

from libc.math cimport fabs, log, pow, sqrt
from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.readers cimport Features
from streamnb.naive_bayes._kernel.table cimport Cell, Table

cdef enum:
    STRING_FEATURES = 3  # `step.pyx` compares it with the plain module's

cdef enum:
    CHAIN = 17  # the bytes of the longest string; `step.pyx` compares it with the reader's limit


cdef struct MarkovConstants:  # of the plain modules
    double first_guess
    double p_min
    double length_exponent
    double length_pad
    double square_law_scale
    double clip


cdef inline double mix(double k, double n, double p, double scale) noexcept nogil:
    """Return the probability of a byte seen k times in a context seen n times; p is that of the shorter context."""
    cdef double m = sqrt(n * scale)
    return (k + m * p) / ((n if n > k else k) + m)


cdef inline void predict(
    const Table* table,
    const Features* features,
    uint64_t string,
    const int64_t* active,
    const int64_t* place,
    uint64_t S,
    double scale,
    const MarkovConstants* k,
    double* p,
) noexcept nogil:
    """Write the log probability of a string's last byte to `p`, per active class."""
    cdef uint64_t[CHAIN] chain
    cdef uint64_t n = 0, c
    cdef int64_t context, row, j
    cdef const double* seen
    cdef const double* after
    cdef const Cell* cell
    cdef const Cell* end
    cdef const Cell* next
    cdef const Cell* last
    while features.items[string].size > 0:
        chain[n] = string
        n += 1
        string = features.links[string].tail
    for j in range(<int64_t>S):
        p[j] = k.first_guess
    while n > 0:
        n -= 1
        context, row = features.items[features.links[chain[n]].head].row, features.items[chain[n]].row
        if context < 0:
            continue
        if table.sparse:
            cell = table.cells + table.sparse_rows[context].first
            end = cell + table.sparse_rows[context].n
            next = last = table.cells
            if row >= 0:
                next = table.cells + table.sparse_rows[row].first
                last = next + table.sparse_rows[row].n
            while cell < end:
                while next < last and next.c < cell.c:  # in both rows the classes rise
                    next += 1
                j = place[cell.c]
                if j >= 0:
                    p[j] = mix(next.count if next < last and next.c == cell.c else 0.0, cell.count, p[j], scale)
                cell += 1
            continue
        seen = table.counts + <uint64_t>context * table.n_classes
        after = table.counts + <uint64_t>row * table.n_classes if row >= 0 else NULL
        for j in range(<int64_t>S):
            c = active[j]
            if seen[c] > 0.0:
                p[j] = mix(after[c] if after != NULL else 0.0, seen[c], p[j], scale)
    for j in range(<int64_t>S):
        p[j] = log(p[j] if p[j] > k.p_min else k.p_min)


cdef inline void log_markov(
    const Table* table,
    const Features* features,
    uint64_t v,
    const int64_t* active,
    const int64_t* place,
    uint64_t S,
    double scale,
    const MarkovConstants* k,
    double* p,
    double* z,
) noexcept nogil:
    """Write the log likelihood of a text per active class to `z`; `p` has room for S numbers."""
    cdef uint64_t i, j
    for j in range(S):
        z[j] = 0.0
    for i in range(features.ends[v], features.longest[v]):
        predict(table, features, i, active, place, S, scale, k, p)
        for j in range(S):
            z[j] += features.items[i].f * p[j]


cdef inline void string_features(
    const Table* table,
    const Features* features,
    uint64_t v,
    const int64_t* active,
    const int64_t* place,
    uint64_t S,
    double scale,
    const MarkovConstants* k,
    double* p,
    double* x,
) noexcept nogil:
    """Write `STRING_FEATURES` features per active class to `x`; `p` has room for S numbers."""
    cdef double* q = x + S
    cdef double* clipped = q + S
    cdef double length = 0.0, f, mean, d, z
    cdef uint64_t i, j
    for j in range(STRING_FEATURES * S):
        x[j] = 0.0
    for i in range(features.ends[v], features.longest[v]):
        predict(table, features, i, active, place, S, scale, k, p)
        f, mean = features.items[i].f, 0.0
        for j in range(S):
            mean += p[j]
        mean /= <double>S
        length += f
        for j in range(S):
            d = p[j] - mean
            x[j] += f * d
            q[j] += f * (d * fabs(d))
            d = d if d > -k.clip else -k.clip
            clipped[j] += f * (d if d < k.clip else k.clip)
    z = pow(length + k.length_pad, -k.length_exponent)
    for j in range(S):
        x[j] = z * x[j]
        q[j] = k.square_law_scale * z * q[j]
        clipped[j] = z * clipped[j]
