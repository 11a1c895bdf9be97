# The hash table under all count views, as C: one table, exact token bytes in one arena, rows of counts.
#
# A slot holds a row number and 32 bits of the token's hash, so that a probe rarely touches a row that is not
# the one it looks for. The hash is keyed by a seed that is drawn at random for each table: messages are
# hostile, and nobody who writes them can aim at a slot. Nothing that is computed depends on the seed.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from streamnb._kernel.tokens cimport SLACK


cdef extern from *:
    """
    static inline unsigned long long snb_fold(unsigned long long a, unsigned long long b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (unsigned long long)product ^ (unsigned long long)(product >> 64);
    }
    #define snb_prefetch(address) __builtin_prefetch(address)
    """
    uint64_t snb_fold(uint64_t a, uint64_t b) noexcept nogil
    void snb_prefetch(const void* address) noexcept nogil


cdef enum:
    MOVES = 8  # rows that move with each new one: a move ends long before the next begins
    AT_ONCE = 65536  # a smaller table moves at once, in about a millisecond


cdef struct Slot:
    uint32_t row  # plus 1; 0 is an empty slot
    uint32_t tag


cdef struct Table:
    Slot* slots
    uint64_t mask  # slots minus 1, a power of two minus 1
    Slot* old_slots  # while the table moves into larger slots: those it comes from
    uint64_t old_mask
    uint64_t moved  # rows that have moved, of those there were when it began
    uint64_t moving
    uint64_t seed
    double* counts  # rows x n_classes
    uint64_t* starts  # of each row's token in the arena; one more than rows
    uint8_t* views
    uint8_t* arena
    uint64_t rows
    uint64_t rows_capacity
    uint64_t arena_capacity
    uint64_t n_classes
    uint64_t n_views
    double* totals  # views x n_classes
    uint64_t* known  # tokens with a count, by view


cdef inline uint64_t tail(const uint8_t* data, uint64_t size) noexcept nogil:
    """The last bytes of a token, 8 at most, as a number; up to `SLACK` bytes past it are read and dropped."""
    cdef uint64_t word
    memcpy(&word, data, 8)
    return word if size >= 8 else word & ((<uint64_t>1 << (8 * size)) - 1)


cdef inline bint same(const uint8_t* a, const uint8_t* b, uint64_t size) noexcept nogil:
    """Whether two tokens of one size, with slack after both, are equal."""
    while size > 8:
        if tail(a, 8) != tail(b, 8):
            return False
        a += 8
        b += 8
        size -= 8
    return tail(a, size) == tail(b, size)


cdef inline uint64_t hash_bytes(const uint8_t* data, uint64_t size, uint64_t seed) noexcept nogil:
    """A keyed hash of 64 bits: eight bytes at a time through a folded multiplication; needs slack."""
    cdef uint64_t h = seed ^ (size * <uint64_t>0x9E3779B97F4A7C15)
    while size > 8:
        h = snb_fold(h ^ tail(data, 8), <uint64_t>0xA0761D6478BD642F)
        data += 8
        size -= 8
    h = snb_fold(h ^ tail(data, size), <uint64_t>0xE7037ED1A0B428DB)
    return snb_fold(h ^ seed, <uint64_t>0x8EBC6AF09C88C6E3)


cdef inline int64_t find(
    const Table* table, const uint8_t* token, uint64_t size, uint64_t view, uint64_t h
) noexcept nogil:
    """The row of a token of a view, or -1; the token needs slack."""
    cdef int64_t row = find_in(table, table.slots, table.mask, token, size, view, h)
    if row < 0 and table.old_slots != NULL:
        row = find_in(table, table.old_slots, table.old_mask, token, size, view, h)
    return row


cdef inline int64_t find_in(
    const Table* table,
    const Slot* slots,
    uint64_t mask,
    const uint8_t* token,
    uint64_t size,
    uint64_t view,
    uint64_t h,
) noexcept nogil:
    cdef uint64_t at = h & mask
    cdef uint32_t tag = <uint32_t>(h >> 32)
    cdef uint64_t row
    while slots[at].row != 0:
        if slots[at].tag == tag:
            row = slots[at].row - 1
            if (
                table.views[row] == view
                and table.starts[row + 1] - table.starts[row] == size
                and same(table.arena + table.starts[row], token, size)
            ):
                return <int64_t>row
        at = (at + 1) & mask
    return -1


cdef inline void place(Table* table, uint64_t row, uint64_t h) noexcept nogil:
    cdef uint64_t at = h & table.mask
    while table.slots[at].row != 0:
        at = (at + 1) & table.mask
    table.slots[at].row = <uint32_t>(row + 1)
    table.slots[at].tag = <uint32_t>(h >> 32)


cdef inline uint64_t row_hash(Table* table, uint64_t row) noexcept nogil:
    return hash_bytes(
        table.arena + table.starts[row],
        table.starts[row + 1] - table.starts[row],
        table.seed + table.views[row],
    )


cdef inline uint64_t insert(
    Table* table, const uint8_t* token, uint64_t size, uint64_t view, uint64_t h
) noexcept nogil:
    """A new row of zeros; `reserve` has made room for it."""
    cdef uint64_t row = table.rows
    memcpy(table.arena + table.starts[row], token, size)
    table.starts[row + 1] = table.starts[row] + size
    table.views[row] = <uint8_t>view
    memset(table.counts + row * table.n_classes, 0, table.n_classes * sizeof(double))
    table.rows = row + 1
    table.known[view] += 1
    place(table, row, h)
    if table.old_slots != NULL:
        move_rows(table, MOVES)
    return row


cdef inline void move_rows(Table* table, uint64_t n) noexcept nogil:
    """Move some rows into the larger slots; with the last one the old slots are let go."""
    while n > 0 and table.moved < table.moving:
        place(table, table.moved, row_hash(table, table.moved))
        table.moved += 1
        n -= 1
    if table.moved == table.moving:
        free(table.old_slots)
        table.old_slots = NULL


cdef inline int open_table(Table* table, uint64_t n_views, uint64_t seed) noexcept nogil:
    memset(table, 0, sizeof(Table))
    table.n_views = n_views
    table.seed = seed
    table.mask = 255
    table.rows_capacity = 128
    table.arena_capacity = 1024
    table.slots = <Slot*>calloc(256, sizeof(Slot))
    table.starts = <uint64_t*>calloc(129, sizeof(uint64_t))
    table.views = <uint8_t*>calloc(128, 1)
    table.arena = <uint8_t*>malloc(1024 + SLACK)
    table.counts = <double*>calloc(1, sizeof(double))
    table.totals = <double*>calloc(1, sizeof(double))
    table.known = <uint64_t*>calloc(n_views + 1, sizeof(uint64_t))
    if not (
        table.slots and table.starts and table.views and table.arena and table.counts and table.totals and table.known
    ):
        return -1
    return 0


cdef inline void close_table(Table* table) noexcept nogil:
    free(table.slots)
    free(table.old_slots)
    free(table.starts)
    free(table.views)
    free(table.arena)
    free(table.counts)
    free(table.totals)
    free(table.known)
    memset(table, 0, sizeof(Table))


cdef inline int resize(void** block, uint64_t size) noexcept nogil:
    cdef void* moved = realloc(block[0], size if size > 0 else 1)
    if moved == NULL:
        return -1
    block[0] = moved
    return 0


cdef inline void rebuild(Table* table) noexcept nogil:
    """Fill the slots anew from the rows."""
    cdef uint64_t row
    free(table.old_slots)
    table.old_slots = NULL
    memset(table.slots, 0, (table.mask + 1) * sizeof(Slot))
    for row in range(table.rows):
        place(table, row, row_hash(table, row))


cdef inline int reserve(Table* table, uint64_t rows, uint64_t size) noexcept nogil:
    """Room for so many more rows and bytes of tokens, before anything is changed; -1 if there is no memory."""
    cdef uint64_t needed = table.rows + rows
    cdef uint64_t capacity
    cdef uint64_t slots
    cdef Slot* fresh
    if needed > table.rows_capacity:
        capacity = table.rows_capacity + (table.rows_capacity >> 1)
        capacity = capacity if capacity > needed else needed
        if capacity >= <uint64_t>0xFFFFFFFF:
            return -1
        if (
            resize(<void**>&table.counts, capacity * table.n_classes * sizeof(double)) != 0
            or resize(<void**>&table.starts, (capacity + 1) * sizeof(uint64_t)) != 0
            or resize(<void**>&table.views, capacity) != 0
        ):
            return -1
        table.rows_capacity = capacity
    needed = table.starts[table.rows] + size
    if needed > table.arena_capacity:
        capacity = table.arena_capacity + (table.arena_capacity >> 1)
        capacity = capacity if capacity > needed else needed
        if resize(<void**>&table.arena, capacity + SLACK) != 0:
            return -1
        table.arena_capacity = capacity
    needed = table.rows + rows
    slots = table.mask + 1
    if needed * 10 > slots * 7:
        while needed * 10 > slots * 7:
            slots *= 2
        fresh = <Slot*>calloc(slots, sizeof(Slot))
        if fresh == NULL:
            return -1
        if table.old_slots != NULL:  # a message so large that the last move has not ended
            move_rows(table, table.moving)
        table.old_slots = table.slots
        table.old_mask = table.mask
        table.moved = 0
        table.moving = table.rows
        table.slots = fresh
        table.mask = slots - 1
        move_rows(table, 0 if table.rows > AT_ONCE else table.rows)
    return 0


cdef inline int widen(Table* table) noexcept nogil:
    """One class more: every row and every view's totals get a column of 0."""
    cdef uint64_t old = table.n_classes
    cdef uint64_t new = old + 1
    cdef uint64_t row, view
    cdef double* counts = <double*>malloc((table.rows_capacity * new + 1) * sizeof(double))
    cdef double* totals = <double*>calloc(table.n_views * new + 1, sizeof(double))
    if counts == NULL or totals == NULL:
        free(counts)
        free(totals)
        return -1
    for row in range(table.rows):
        memcpy(counts + row * new, table.counts + row * old, old * sizeof(double))
        counts[row * new + old] = 0.0
    for view in range(table.n_views):
        memcpy(totals + view * new, table.totals + view * old, old * sizeof(double))
    free(table.counts)
    free(table.totals)
    table.counts = counts
    table.totals = totals
    table.n_classes = new
    return 0
