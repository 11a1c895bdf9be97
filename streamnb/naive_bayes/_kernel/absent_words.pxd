# Twin of: streamnb.naive_bayes.statistics.absent_words
#
# Per class, a histogram of how many messages held each word. The order of every sum is the plain one, so that
# the bits are the same.

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memmove

from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.table cimport Table, view_of
from streamnb.naive_bayes._kernel.tokenizer cimport grow


cdef struct Entry:
    double count  # above 0
    uint64_t words  # that have this count


cdef struct Histogram:  # of one class
    double messages
    Entry* entries  # by rising count
    uint64_t n
    uint64_t capacity
    bint is_summed  # whether the sums below are up to date: the class has not learned since
    double b
    double total
    uint64_t counted
    uint64_t certain


cdef inline int reserve(Histogram* histogram, uint64_t words) noexcept nogil:
    """Make room for `words` words to move to new counts; return -1 without memory."""
    return grow(<void**>&histogram.entries, &histogram.capacity, histogram.n + words, sizeof(Entry))


cdef inline uint64_t place_of(const Histogram* histogram, double count) noexcept nogil:
    """Return the first entry of that count or a larger one."""
    cdef uint64_t low = 0, high = histogram.n, middle
    while low < high:
        middle = (low + high) // 2
        if histogram.entries[middle].count < count:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_entry(const Histogram* histogram, uint64_t at, double count) noexcept nogil:
    return at < histogram.n and histogram.entries[at].count == count


cdef inline void move(Histogram* histogram, double before, double after) noexcept nogil:
    """Move one word from one count to another; a count of 0 has no entry. `reserve` made room for a new one."""
    cdef uint64_t at
    if before > 0:
        at = place_of(histogram, before)
        if is_entry(histogram, at, before):
            histogram.entries[at].words -= 1
            if histogram.entries[at].words == 0:
                histogram.n -= 1
                memmove(histogram.entries + at, histogram.entries + at + 1, (histogram.n - at) * sizeof(Entry))
    if after > 0:
        at = place_of(histogram, after)
        if not is_entry(histogram, at, after):
            memmove(histogram.entries + at + 1, histogram.entries + at, (histogram.n - at) * sizeof(Entry))
            histogram.entries[at].count, histogram.entries[at].words = after, 0
            histogram.n += 1
        histogram.entries[at].words += 1


cdef inline void set_messages(Histogram* histogram, double messages) noexcept nogil:
    """Set the weight of the class's messages, which makes the cached sums invalid."""
    histogram.messages = messages
    histogram.is_summed = False


cdef inline void fade(Histogram* histogram, double factor, double least, double messages) noexcept nogil:
    """Multiply every count by a power of two, which keeps their order; drop words whose count falls below `least`."""
    cdef uint64_t i, gone = 0
    for i in range(histogram.n):
        histogram.entries[i].count *= factor
        gone += histogram.entries[i].count < least
    histogram.n -= gone
    memmove(histogram.entries, histogram.entries + gone, histogram.n * sizeof(Entry))
    set_messages(histogram, messages)


cdef inline void recount_left(
    Histogram* histograms, const Table* table, uint64_t view, const double* messages
) noexcept nogil:
    """Count the words of all classes again after an eviction; the rows left have counts that are entries already."""
    cdef uint64_t c, i, n, row, at
    cdef const double* counts
    for c in range(table.n_classes):
        set_messages(histograms + c, messages[c])
        for i in range(histograms[c].n):
            histograms[c].entries[i].words = 0
    for row in range(table.rows):
        if view_of(table, row) != view:
            continue
        counts = open_row(table, row)
        for c in range(table.n_classes):
            at = place_of(histograms + c, counts[c])
            if is_entry(histograms + c, at, counts[c]):
                histograms[c].entries[at].words += 1
        close_row(table, row)
    for c in range(table.n_classes):
        n = 0
        for i in range(histograms[c].n):
            if histograms[c].entries[i].words:
                histograms[c].entries[n] = histograms[c].entries[i]
                n += 1
        histograms[c].n = n


cdef inline double all_absent(Histogram* histogram, uint64_t vocabulary, double b, uint64_t* certain) noexcept nogil:
    """Return the sum of `AbsentWords.all_absent`, and in `certain` the number of words left out of it."""
    cdef uint64_t i
    cdef int64_t never
    cdef double rest, total
    if not histogram.is_summed or histogram.b != b:
        histogram.total, histogram.counted, histogram.certain = 0.0, 0, 0
        for i in range(histogram.n):
            histogram.counted += histogram.entries[i].words
            rest = histogram.messages - histogram.entries[i].count + b
            if rest > 0:
                histogram.total += <double>histogram.entries[i].words * log(rest)
            else:
                histogram.certain += histogram.entries[i].words
        histogram.b, histogram.is_summed = b, True
    total = histogram.total
    never = <int64_t>(vocabulary - histogram.counted)
    if never != 0 and histogram.messages + b > 0:
        total += <double>never * log(histogram.messages + b)
    certain[0] = histogram.certain
    return total


cdef class AbsentWords:
    cdef Histogram* by_class  # one per class; those past the last class are ready for classes to come
    cdef uint64_t n_classes, capacity
    cdef reserve(self, uint64_t n_classes)
    cdef Histogram* _of(self, class_index) except NULL
    cdef _fill(self, histograms, messages)
