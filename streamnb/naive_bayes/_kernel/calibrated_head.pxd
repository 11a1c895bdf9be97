# Twin of: streamnb.naive_bayes.posterior.calibrated_head
#
# `step.pyx` reads the constants from the plain module.

from libc.math cimport exp, log, sqrt
from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.against_rest cimport VIEW_FEATURES
from streamnb.naive_bayes._kernel.odds cimport soften
from streamnb.naive_bayes._kernel.steady_normal cimport Normal


cdef struct HeadConstants:
    double evidence_rate
    double meta_rate
    double trust_rate
    double string_rate
    double offset_rate
    double eta_low
    double eta_high
    double square_start
    double eta_square_start


cdef struct Head:  # a `CalibratedHead`, and its opinion on the current message
    uint64_t n_text_views
    uint64_t n_features
    uint64_t first_of_strings  # the index of the first feature of strings
    bint trusts  # whether the last feature is that of trust
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


cdef inline double left_of(double square, double factor, double start) noexcept nogil:
    return square * factor if square * factor > start else start


cdef inline void fade(Head* head, uint64_t n_classes, double factor, const HeadConstants* k) noexcept nogil:
    """The twin of `CalibratedHead.fade`."""
    cdef uint64_t i
    for i in range(head.n_features):
        head.weight_squares[i] = left_of(head.weight_squares[i], factor, k.square_start)
    for i in range(n_classes):
        head.offset_squares[i] = left_of(head.offset_squares[i], factor, k.square_start)
    head.eta_squares = left_of(head.eta_squares, factor, k.eta_square_start)


cdef inline void form_opinion(
    Head* head, const int64_t* active, uint64_t S, const double* class_counts, double scale
) noexcept nogil:
    """The twin of `CalibratedHead.opinion`; `class_counts` is NULL in a model that does not forget."""
    cdef uint64_t i, j
    cdef double eps, noise, left
    for j in range(S):
        head.u[j] = head.offsets[active[j]]
        if class_counts != NULL:
            left = class_counts[active[j]] / scale
            head.u[j] = head.u[j] + (log(left) if left < 1.0 else 0.0)
    for i in range(head.n_features):
        for j in range(S):
            head.u[j] += head.weights[i] * head.phi[i * S + j]
    soften(head.u, S, head.softmax)
    eps = 1.0 / (1.0 + exp(-head.eta))
    noise = eps / <double>S
    for j in range(S):
        head.posterior[j] = (1.0 - eps) * head.softmax[j] + noise


cdef inline void find_errors(Head* head, uint64_t S, uint64_t y, double weight) noexcept nogil:
    """The twin of `CalibratedHead.errors`: write `r` for the last opinion; y is an index into the active classes."""
    cdef uint64_t j
    cdef double w = weight if weight < 1.0 else 1.0
    cdef double rho = (1.0 - 1.0 / (1.0 + exp(-head.eta))) * head.softmax[y] / head.posterior[y]
    for j in range(S):
        head.r[j] = w * rho * (head.softmax[j] - (1.0 if j == y else 0.0))


cdef inline void learn(
    Head* head, const int64_t* active, uint64_t S, uint64_t y, double weight, const HeadConstants* k
) noexcept nogil:
    """The twin of `CalibratedHead.learn`, from the last opinion and its errors."""
    cdef uint64_t i, j, c, n_of_text = VIEW_FEATURES * head.n_text_views
    cdef double w = weight if weight < 1.0 else 1.0
    cdef double eps = 1.0 / (1.0 + exp(-head.eta))
    cdef uint64_t n_untrusted = head.n_features - head.trusts
    cdef double rate = k.evidence_rate / sqrt(<double>head.n_text_views)
    cdef double h, step
    cdef bint is_string
    for i in range(head.n_features):
        h = 0.0
        for j in range(S):
            h += head.r[j] * head.phi[i * S + j]
        head.weight_squares[i] += h * h
        is_string = head.first_of_strings <= i < n_untrusted
        step = rate if i < n_of_text else k.trust_rate if i >= n_untrusted else k.meta_rate
        step = k.string_rate if is_string else step
        head.weights[i] -= step * h / sqrt(head.weight_squares[i])
        if (i < n_of_text or i >= n_untrusted or is_string) and head.weights[i] < 0.0:
            head.weights[i] = 0.0
    for j in range(S):
        c = active[j]
        head.offset_squares[c] += head.r[j] * head.r[j]
        head.offsets[c] -= k.offset_rate * head.r[j] / sqrt(head.offset_squares[c])
    h = w * (head.softmax[y] - 1.0 / <double>S) / head.posterior[y] * eps * (1.0 - eps)
    head.eta_squares += h * h
    h = head.eta - h / sqrt(head.eta_squares)
    h = h if h > k.eta_low else k.eta_low
    head.eta = h if h < k.eta_high else k.eta_high
