# Twin of: nothing; the plain counts are dicts
#
# The hash table of all count views: one table, exact token bytes in one arena, rows of counts (cells.pxd).
#
# A slot has 32 bits: the low bits hold a row number, the others a part of the token's hash, so that a probe
# rarely touches the row of another token. The hash is keyed by a seed drawn at random for each store: messages
# are hostile, and a sender who does not know the seed cannot choose tokens that collide. No result depends on
# the seed. `CountStore` owns the memory in buffers; a table only points at it.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from streamnb.naive_bayes._kernel.tokenizer cimport SLACK


cdef extern from *:
    """
    static inline unsigned long long snb_fold(unsigned long long a, unsigned long long b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (unsigned long long)product ^ (unsigned long long)(product >> 64);
    }
    #define snb_prefetch(address) __builtin_prefetch(address)
    static const unsigned long long snb_first[9] = {
        0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF
    };
    """
    const uint64_t* snb_first  # masks of the first n bytes of an integer
    uint64_t snb_fold(uint64_t a, uint64_t b) noexcept nogil
    void snb_prefetch(const void* address) noexcept nogil


cdef enum:
    HASH_VERSION = 1  # of `hash_bytes`: an index in a snapshot fits only the hash that made it
    MOVES = 8  # rows that move with each new row: a move ends long before the next begins


cdef struct Cell:  # a count above 0; see cells.pxd
    double count
    uint32_t c  # its class; in the first cell of a free block, that of the next free block plus 1


cdef struct Row:
    uint32_t first  # cell of its block
    uint32_t n  # counts above 0


cdef struct Table:
    uint32_t* slots  # a row number plus 1 in the bits under `mask`, a part of its hash above; 0 is empty
    uint64_t mask  # slots minus 1, a power of two minus 1
    uint32_t* old_slots  # while the table moves into larger slots: the old ones
    uint64_t old_mask
    uint64_t moved  # rows that have moved
    uint64_t moving  # rows there were when the move began
    uint64_t seed
    bint trusts  # whether the head learns how far to trust each token
    float* trust  # rows x 2, if it does: the trust, and the sum of its squared gradients
    bint sparse  # whether rows hold only counts above 0
    double* counts  # rows x n_classes, if they are not
    Row* sparse_rows  # rows, if they are
    Cell* cells
    uint64_t cells_capacity
    uint64_t cells_used  # of those from the first one on, by blocks of rows and by free blocks
    uint64_t cells_held  # by blocks of rows
    uint64_t cells_counted  # that hold a count
    uint32_t[32] free_blocks  # of 2^k cells: the first cell of one plus 1, or 0
    double* opened  # n_classes, 0 except while a row is open; see cells.pxd
    uint64_t* bounds  # 0, then for each row 256 times where its token ends in the arena, plus its view
    uint8_t* arena
    uint64_t rows
    uint64_t rows_capacity
    uint64_t arena_capacity
    uint64_t n_classes
    uint64_t n_views
    double* totals  # views x n_classes
    uint64_t* known  # tokens with a count, by view


cdef inline uint64_t tail(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return the last bytes of a token, 8 at most, as a number; reads up to `SLACK` bytes past them and drops them."""
    cdef uint64_t word
    memcpy(&word, data, 8)
    return word & snb_first[size if size < 8 else 8]


cdef inline bint same(const uint8_t* a, const uint8_t* b, uint64_t size) noexcept nogil:
    """Return whether two tokens of one size are equal; both need slack."""
    while size > 8:
        if tail(a, 8) != tail(b, 8):
            return False
        a += 8
        b += 8
        size -= 8
    return tail(a, size) == tail(b, size)


cdef inline void copy_bytes(uint8_t* into, const uint8_t* data, uint64_t size) noexcept nogil:
    """Copy a token, eight bytes at a time, so bytes past its end are copied too; both sides have slack."""
    cdef uint64_t at = 0
    while at < size:
        memcpy(into + at, data + at, 8)
        at += 8


cdef inline uint64_t hash_bytes(const uint8_t* data, uint64_t size, uint64_t seed) noexcept nogil:
    """Return a keyed hash of 64 bits: eight bytes at a time through a folded multiplication. The token needs slack."""
    cdef uint64_t h = seed ^ (size * <uint64_t>0x9E3779B97F4A7C15)
    while size > 8:
        h = snb_fold(h ^ tail(data, 8), <uint64_t>0xA0761D6478BD642F)
        data += 8
        size -= 8
    h = snb_fold(h ^ tail(data, size), <uint64_t>0xE7037ED1A0B428DB)
    return snb_fold(h ^ seed, <uint64_t>0x8EBC6AF09C88C6E3)


cdef inline uint64_t start_of(const Table* table, uint64_t row) noexcept nogil:
    return table.bounds[row] >> 8


cdef inline uint64_t size_of(const Table* table, uint64_t row) noexcept nogil:
    return (table.bounds[row + 1] >> 8) - (table.bounds[row] >> 8)


cdef inline uint64_t view_of(const Table* table, uint64_t row) noexcept nogil:
    return table.bounds[row + 1] & 255


cdef inline bint is_row_of(
    const Table* table, uint64_t row, const uint8_t* token, uint64_t size, uint64_t view
) noexcept nogil:
    return (
        view_of(table, row) == view
        and size_of(table, row) == size
        and same(table.arena + start_of(table, row), token, size)
    )


cdef inline int64_t find(
    const Table* table, const uint8_t* token, uint64_t size, uint64_t view, uint64_t h
) noexcept nogil:
    """Return the row of a view's token, or -1; the token needs slack."""
    cdef int64_t row = find_in(table, table.slots, table.mask, token, size, view, h)
    if row < 0 and table.old_slots != NULL:
        row = find_in(table, table.old_slots, table.old_mask, token, size, view, h)
    return row


cdef inline int64_t find_in(
    const Table* table,
    const uint32_t* slots,
    uint64_t mask,
    const uint8_t* token,
    uint64_t size,
    uint64_t view,
    uint64_t h,
) noexcept nogil:
    cdef uint64_t at = h & mask
    cdef uint32_t tag = <uint32_t>(h >> 32)
    cdef uint32_t tag_bits = <uint32_t>~mask
    cdef uint64_t row
    while slots[at] != 0:
        if (slots[at] ^ tag) & tag_bits == 0:
            row = (slots[at] & mask) - 1
            if is_row_of(table, row, token, size, view):
                return <int64_t>row
        at = (at + 1) & mask
    return -1


cdef inline int64_t candidate(const Table* table, uint64_t h) noexcept nogil:
    """Return the first row whose slot fits a token's hash, or -1; the caller verifies that it is the token's."""
    cdef uint64_t at = h & table.mask
    cdef uint32_t tag = <uint32_t>(h >> 32)
    cdef uint32_t tag_bits = <uint32_t>~table.mask
    while table.slots[at] != 0:
        if (table.slots[at] ^ tag) & tag_bits == 0:
            return <int64_t>(table.slots[at] & table.mask) - 1
        at = (at + 1) & table.mask
    return -1


cdef inline void place(Table* table, uint64_t row, uint64_t h) noexcept nogil:
    cdef uint64_t at = h & table.mask
    while table.slots[at] != 0:
        at = (at + 1) & table.mask
    table.slots[at] = (<uint32_t>(h >> 32) & <uint32_t>~table.mask) | <uint32_t>(row + 1)


cdef inline void place_rows(Table* table, uint64_t first, uint64_t last) noexcept nogil:
    """Place rows, eight at a time so that their slots are fetched together."""
    cdef uint64_t[8] hashes
    cdef uint64_t i, n, start
    while first < last:
        n = last - first if last - first < 8 else 8
        for i in range(n):
            start = start_of(table, first + i)
            hashes[i] = hash_bytes(
                table.arena + start, size_of(table, first + i), table.seed + view_of(table, first + i)
            )
            snb_prefetch(table.slots + (hashes[i] & table.mask))
        for i in range(n):
            place(table, first + i, hashes[i])
        first += n


cdef inline uint64_t insert(
    Table* table, const uint8_t* token, uint64_t size, uint64_t view, uint64_t h
) noexcept nogil:
    """Append a row of zeros; `has_room` was true."""
    cdef uint64_t row = table.rows
    cdef uint64_t start = start_of(table, row)
    copy_bytes(table.arena + start, token, size)
    table.bounds[row + 1] = (start + size) << 8 | view
    if table.trusts:
        table.trust[2 * row] = table.trust[2 * row + 1] = 0.0
    if table.sparse:
        table.sparse_rows[row].n = 0
    else:
        memset(table.counts + row * table.n_classes, 0, table.n_classes * sizeof(double))
    table.rows = row + 1
    table.known[view] += 1
    place(table, row, h)
    if table.moved < table.moving:
        move_rows(table, MOVES)
    return row


cdef inline void move_rows(Table* table, uint64_t n) noexcept nogil:
    """Move n rows into the larger slots; after the last one the old slots are not searched any more."""
    cdef uint64_t last = table.moved + n if table.moved + n < table.moving else table.moving
    place_rows(table, table.moved, last)
    table.moved = last
    if last == table.moving:
        table.old_slots = NULL


cdef inline bint has_room(const Table* table, uint64_t rows, uint64_t size, uint64_t cells) noexcept nogil:
    """Return whether that many more rows, bytes of tokens and cells fit without more memory."""
    return (
        table.rows + rows <= table.rows_capacity
        and (not table.sparse or table.cells_used + cells <= table.cells_capacity)
        and start_of(table, table.rows) + size <= table.arena_capacity
        and (table.rows + rows) * 10 <= (table.mask + 1) * 7
    )
