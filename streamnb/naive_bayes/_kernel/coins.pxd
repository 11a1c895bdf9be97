# How many words stand in how many messages of a class, in C: the twins of `streamnb.naive_bayes.statistics.absent_words` and of
# `Bernoulli.parts`. The order of every sum is the plain one, so that the bits are the same.

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memmove

from streamnb.naive_bayes._kernel.table cimport Table, view_of
from streamnb.naive_bayes._kernel.tokens cimport grow


cdef struct Step:
    double count  # above 0
    uint64_t words  # so many have it


cdef struct Coins:  # of one class
    double messages
    Step* steps  # in order of their counts
    uint64_t n
    uint64_t capacity
    bint kept  # whether what follows was summed since the class last learned
    double b
    double total
    uint64_t counted
    uint64_t certain


cdef inline int reserve(Coins* coins, uint64_t words) noexcept nogil:
    """Room for so many words to move to new counts; -1 if there is no memory."""
    return grow(<void**>&coins.steps, &coins.capacity, coins.n + words, sizeof(Step))


cdef inline uint64_t place_of(const Coins* coins, double count) noexcept nogil:
    """The first step of that count or a larger one."""
    cdef uint64_t low = 0, high = coins.n, middle
    while low < high:
        middle = (low + high) // 2
        if coins.steps[middle].count < count:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_step(const Coins* coins, uint64_t at, double count) noexcept nogil:
    return at < coins.n and coins.steps[at].count == count


cdef inline void move(Coins* coins, double before, double after) noexcept nogil:
    """One word goes from one count to another; a count of 0 is not kept, and there is room for a new one."""
    cdef uint64_t at
    if before > 0:
        at = place_of(coins, before)
        if is_step(coins, at, before):
            coins.steps[at].words -= 1
            if coins.steps[at].words == 0:
                coins.n -= 1
                memmove(coins.steps + at, coins.steps + at + 1, (coins.n - at) * sizeof(Step))
    if after > 0:
        at = place_of(coins, after)
        if not is_step(coins, at, after):
            memmove(coins.steps + at + 1, coins.steps + at, (coins.n - at) * sizeof(Step))
            coins.steps[at].count, coins.steps[at].words = after, 0
            coins.n += 1
        coins.steps[at].words += 1


cdef inline void heard(Coins* coins, double messages) noexcept nogil:
    """The class has so many messages now; what was summed is of no more use."""
    coins.messages = messages
    coins.kept = False


cdef inline void fade(Coins* coins, double factor, double least, double messages) noexcept nogil:
    """Every count times a power of two, which keeps their order; words of too little a count have none."""
    cdef uint64_t i, gone = 0
    for i in range(coins.n):
        coins.steps[i].count *= factor
        gone += coins.steps[i].count < least
    coins.n -= gone
    memmove(coins.steps, coins.steps + gone, coins.n * sizeof(Step))
    heard(coins, messages)


cdef inline void recount_left(Coins* coins, const Table* table, uint64_t view, const double* messages) noexcept nogil:
    """Of all classes, after rows were let go: those that stay have counts that there were, so it fits."""
    cdef uint64_t c, i, n, row, at
    cdef double count
    for c in range(table.n_classes):
        heard(coins + c, messages[c])
        for i in range(coins[c].n):
            coins[c].steps[i].words = 0
    for row in range(table.rows):
        if view_of(table, row) != view:
            continue
        for c in range(table.n_classes):
            count = table.counts[row * table.n_classes + c]
            at = place_of(coins + c, count)
            if is_step(coins + c, at, count):
                coins[c].steps[at].words += 1
    for c in range(table.n_classes):
        n = 0
        for i in range(coins[c].n):
            if coins[c].steps[i].words:
                coins[c].steps[n] = coins[c].steps[i]
                n += 1
        coins[c].n = n


cdef inline double all_absent(Coins* coins, uint64_t vocabulary, double b, uint64_t* certain) noexcept nogil:
    """The twin of `AbsentWords.all_absent`: the sum, and into `certain` the words left out of it."""
    cdef uint64_t i
    cdef int64_t never
    cdef double rest, total
    if not coins.kept or coins.b != b:
        coins.total, coins.counted, coins.certain = 0.0, 0, 0
        for i in range(coins.n):
            coins.counted += coins.steps[i].words
            rest = coins.messages - coins.steps[i].count + b
            if rest > 0:
                coins.total += <double>coins.steps[i].words * log(rest)
            else:
                coins.certain += coins.steps[i].words
        coins.b, coins.kept = b, True
    total = coins.total
    never = <int64_t>(vocabulary - coins.counted)
    if never != 0 and coins.messages + b > 0:
        total += <double>never * log(coins.messages + b)
    certain[0] = coins.certain
    return total
