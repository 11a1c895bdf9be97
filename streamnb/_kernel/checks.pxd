# What a count store's sections must be before anything believes them, as C: `streamnb.counts.checked` says
# the same in numpy, and what is wrong; here it takes no longer than reading the memory once.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


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
    """Whether tokens lie end to end and every row counts something; `known` and `sums` are added up, by view."""
    cdef uint64_t row, c, view
    cdef double n
    cdef bint fits, something
    if bounds[0] != 0 or bounds[rows] >> 8 != size:
        return False
    for row in range(rows):
        view = bounds[row + 1] & 255
        if view >= n_views or bounds[row] >> 8 > bounds[row + 1] >> 8:
            return False
        known[view] += 1
        fits, something = True, False
        for c in range(C):
            n = counts[row * C + c]
            fits = fits and 0 <= n < INFINITY
            something = something or n > 0
            sums[view * C + c] += n
        if not (fits and something):
            return False
    return True


cdef inline bint check_slots(
    const uint32_t* slots,
    uint64_t n,
    const uint32_t* old,
    uint64_t n_old,
    uint64_t rows,
    uint64_t moved,
    uint64_t moving,
) noexcept nogil:
    """Whether slots can be looked through safely: as many in use as there are rows, each one a row's."""
    if moved > moving or moving > rows or (moved < moving) != (n_old > 0) or rows * 10 > n * 7:
        return False
    if not in_use(slots, n, rows - moving + moved, rows):
        return False
    return n_old == 0 or (moving * 10 <= n_old * 7 and in_use(old, n_old, moving, moving))


cdef inline bint in_use(const uint32_t* slots, uint64_t n, uint64_t wanted, uint64_t last) noexcept nogil:
    cdef uint64_t i, used = 0, worst = 0, row, mask = n - 1
    if n < 256 or n & mask != 0 or n > <uint64_t>1 << 32:
        return False
    for i in range(n):
        row = slots[i] & mask
        used += row != 0
        used += (row == 0) & (slots[i] != 0)  # which is no slot at all: one too many
        worst = row if row > worst else worst
    return used == wanted and worst <= last


cdef inline bint is_text(const uint8_t* data, uint64_t size, const uint64_t* bounds, uint64_t rows) noexcept nogil:
    """Whether bytes are UTF-8 (RFC 3629), and no token begins inside a character."""
    cdef uint64_t i = 0, row, word
    cdef uint8_t lead, second
    cdef uint64_t more
    while i < size:
        if i + 8 <= size:
            memcpy(&word, data + i, 8)
            if word & <uint64_t>0x8080808080808080 == 0:
                i += 8
                continue
        lead = data[i]
        if lead < 0x80:
            i += 1
            continue
        more = 1 if 0xC2 <= lead <= 0xDF else 2 if 0xE0 <= lead <= 0xEF else 3 if 0xF0 <= lead <= 0xF4 else 0
        if more == 0 or i + more >= size:
            return False
        second = data[i + 1]
        if lead == 0xE0 and second < 0xA0 or lead == 0xED and second > 0x9F:  # too long, or half of a pair
            return False
        if lead == 0xF0 and second < 0x90 or lead == 0xF4 and second > 0x8F:  # too long, or past U+10FFFF
            return False
        i += 1
        while more:
            if data[i] & 0xC0 != 0x80:
                return False
            i += 1
            more -= 1
    for row in range(rows):
        if bounds[row] >> 8 < size and data[bounds[row] >> 8] & 0xC0 == 0x80:
            return False
    return True
