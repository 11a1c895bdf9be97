# Twin of: streamnb.naive_bayes.statistics.count_arrays
#
# The checks on a count store's sections before anything relies on them. `checked` does the same in numpy and
# says what is wrong; here the checks take no longer than reading the memory once.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef enum:
    LANES = 4  # sums that are added up side by side, so that no addition waits for the one before
    AT_ONCE = 1024  # rows that stay in the processor's cache between the checks


cdef inline bint check_rows(
    const uint64_t* bounds,
    uint64_t rows,
    uint64_t size,
    const double* counts,
    uint64_t C,
    uint64_t n_views,
    uint64_t* known,
    double* sums,
) noexcept nogil:
    """Return whether tokens lie end to end and every row has a count above 0.

    `known` has room for `LANES` numbers per view, and `sums` for `LANES` numbers per view and class. Their first
    parts receive the tokens per view, and the counts per view and class.
    """
    cdef uint64_t first, last, i
    if bounds[0] != 0 or bounds[rows] >> 8 != size:
        return False
    for i in range(<uint64_t>LANES * n_views):
        known[i] = 0
    for i in range(<uint64_t>LANES * n_views * C):
        sums[i] = 0.0
    first = 0
    while first < rows:
        last = first + AT_ONCE if first + AT_ONCE < rows else rows
        if not bounds_fit(bounds + first, last - first, n_views, known):
            return False
        if not counts_fit(counts + first * C, (last - first) * C):
            return False
        if not add_rows(bounds + first, last - first, counts + first * C, C, n_views, sums):
            return False
        first = last
    for i in range(n_views, <uint64_t>LANES * n_views):
        known[i % n_views] += known[i]
    for i in range(n_views * C, <uint64_t>LANES * n_views * C):
        sums[i % (n_views * C)] += sums[i]
    return True


cdef inline bint check_cells(
    const uint64_t* bounds,
    uint64_t rows,
    uint64_t size,
    const uint32_t* cells,
    const uint32_t* classes,
    const double* counts,
    uint64_t C,
    uint64_t n_views,
    uint64_t* known,
    double* sums,
) noexcept nogil:
    """Do the work of `check_rows` for rows of groups, whose cells have been checked to lie in their arrays.

    Every row has a count, all counts are above 0, and a row's classes rise.
    """
    cdef uint64_t row, i, n = cells[rows]
    if bounds[0] != 0 or bounds[rows] >> 8 != size:
        return False
    for i in range(<uint64_t>LANES * n_views):
        known[i] = 0
    for i in range(n_views * C):
        sums[i] = 0.0
    if not bounds_fit(bounds, rows, n_views, known) or not counts_fit(counts, n):
        return False
    for row in range(rows):
        if cells[row] == cells[row + 1]:
            return False
        for i in range(cells[row], cells[row + 1]):
            if not counts[i] > 0.0 or (i > cells[row] and classes[i] <= classes[i - 1]):
                return False
            sums[(bounds[row + 1] & 255) * C + classes[i]] += counts[i]
    for i in range(n_views, <uint64_t>LANES * n_views):
        known[i % n_views] += known[i]
    return True


cdef inline bint bounds_fit(const uint64_t* bounds, uint64_t rows, uint64_t n_views, uint64_t* known) noexcept nogil:
    """Return whether no end lies before the last one and all views exist: a negative difference has its top bit set."""
    cdef uint64_t row, odd = 0
    for row in range(rows):
        odd |= ((bounds[row + 1] >> 8) - (bounds[row] >> 8)) | (n_views - 1 - (bounds[row + 1] & 255))
    if odd >> 63:
        return False
    for row in range(rows):
        known[(row % LANES) * n_views + (bounds[row + 1] & 255)] += 1
    return True


cdef inline bint counts_fit(const double* counts, uint64_t n) noexcept nogil:
    """Return whether all counts are finite and none is negative, by their bits: the sign, and an exponent of ones."""
    cdef const uint64_t* bits = <const uint64_t*>counts
    cdef uint64_t i, odd = 0
    for i in range(n):
        odd |= bits[i] | (bits[i] + (<uint64_t>1 << 52))
    return odd >> 63 == 0


cdef inline bint add_rows(
    const uint64_t* bounds, uint64_t rows, const double* counts, uint64_t C, uint64_t n_views, double* sums
) noexcept nogil:
    """Add rows to the sums of their views; return whether each row has a count above 0."""
    cdef uint64_t row, c
    cdef double something
    cdef double* into
    cdef const double* of
    cdef bint fits = True
    for row in range(rows if C == 2 else 0):  # the same as below, without the inner loop
        into = sums + 2 * ((row % LANES) * n_views + (bounds[row + 1] & 255))
        of = counts + 2 * row
        into[0] += of[0]
        into[1] += of[1]
        fits &= of[0] + of[1] > 0.0
    for row in range(rows if C != 2 else 0):
        into = sums + ((row % LANES) * n_views + (bounds[row + 1] & 255)) * C
        of = counts + row * C
        something = 0.0
        for c in range(C):
            into[c] += of[c]
            something += of[c]
        fits &= something > 0.0
    return fits


cdef inline bint check_slots(
    const uint32_t* slots,
    uint64_t n,
    const uint32_t* old,
    uint64_t n_old,
    uint64_t rows,
    uint64_t moved,
    uint64_t moving,
) noexcept nogil:
    """Return whether slots are safe to search: as many are in use as there are rows, and each holds a row's number."""
    if moved > moving or moving > rows or (moved < moving) != (n_old > 0) or rows * 10 > n * 7:
        return False
    if not in_use(slots, n, rows - moving + moved, rows):
        return False
    return n_old == 0 or (moving * 10 <= n_old * 7 and in_use(old, n_old, moving, moving))


cdef inline bint in_use(const uint32_t* slots, uint64_t n, uint64_t wanted, uint64_t rows) noexcept nogil:
    """Return whether `wanted` slots hold a number from 1 to `rows`, and all others 0."""
    cdef uint64_t first = 0, used = 0
    cdef uint32_t mask = <uint32_t>(n - 1), last = <uint32_t>rows, i, used_here, odd = 0
    if n < 256 or n & (n - 1) != 0 or n > <uint64_t>1 << 32:
        return False
    while first < n:
        used_here = 0
        for i in range(256):
            used_here += slots[first + i] != 0
            odd |= (slots[first + i] != 0) & ((slots[first + i] & mask) - 1 >= last)
        used += used_here
        first += 256
    return odd == 0 and used == wanted


cdef inline bint is_text(const uint8_t* data, uint64_t size, const uint64_t* bounds, uint64_t rows) noexcept nogil:
    """Return whether bytes are UTF-8 (RFC 3629) and no token begins inside a character."""
    cdef uint64_t i = 0, row, more
    cdef uint64_t[4] word
    cdef uint8_t lead, second
    cdef bint ascii = True
    while i < size:
        if i + 32 <= size:
            memcpy(word, data + i, 32)
            if (word[0] | word[1] | word[2] | word[3]) & <uint64_t>0x8080808080808080 == 0:
                i += 32
                continue
        lead = data[i]
        if lead < 0x80:
            i += 1
            continue
        ascii = False
        more = 1 if 0xC2 <= lead <= 0xDF else 2 if 0xE0 <= lead <= 0xEF else 3 if 0xF0 <= lead <= 0xF4 else 0
        if more == 0 or i + more >= size:
            return False
        second = data[i + 1]
        if lead == 0xE0 and second < 0xA0 or lead == 0xED and second > 0x9F:  # overlong, or half of a surrogate pair
            return False
        if lead == 0xF0 and second < 0x90 or lead == 0xF4 and second > 0x8F:  # overlong, or above U+10FFFF
            return False
        i += 1
        while more:
            if data[i] & 0xC0 != 0x80:
                return False
            i += 1
            more -= 1
    for row in range(0 if ascii else rows):
        if bounds[row] >> 8 < size and data[bounds[row] >> 8] & 0xC0 == 0x80:
            return False
    return True
