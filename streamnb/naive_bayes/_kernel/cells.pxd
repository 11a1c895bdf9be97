# Twin of: nothing; the plain counts are lists
#
# The counts of one row of the table. With few classes a row holds a count per class; above `DENSE_CLASSES` it holds
# only the counts above 0, by rising class, in a block of cells. A block has room for a power of two of them; a row
# that outgrows its block moves to one twice as large, and its old block serves the next row that needs that size.
#
# `open_row` shows either kind of row as a count per class, so a formula is written once for both.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from streamnb.naive_bayes._kernel.table cimport Cell, Row, Table


cdef inline uint64_t room_of(uint64_t n) noexcept nogil:
    """Return the number of cells in the block of a row with n counts: a power of two, or 0."""
    cdef uint64_t room = 1 if n else 0
    while room < n:
        room *= 2
    return room


cdef inline int size_class(uint64_t room) noexcept nogil:
    """Return the binary logarithm of a block's number of cells."""
    cdef int k = 0
    while <uint64_t>1 << k < room:
        k += 1
    return k


cdef inline const double* open_row(const Table* table, uint64_t row) noexcept nogil:
    """Return a row's counts by class; `close_row` must follow before the next row is opened."""
    cdef const Cell* cell
    cdef const Cell* end
    if not table.sparse:
        return table.counts + row * table.n_classes
    cell = table.cells + table.sparse_rows[row].first
    end = cell + table.sparse_rows[row].n
    while cell < end:
        table.opened[cell.c] = cell.count
        cell += 1
    return table.opened


cdef inline void close_row(const Table* table, uint64_t row) noexcept nogil:
    """Set the counts that `open_row` showed to 0 again."""
    cdef const Cell* cell
    cdef const Cell* end
    if not table.sparse:
        return
    cell = table.cells + table.sparse_rows[row].first
    end = cell + table.sparse_rows[row].n
    while cell < end:
        table.opened[cell.c] = 0.0
        cell += 1


cdef inline uint64_t read_row(const Table* table, uint64_t row, uint32_t* classes, double* counts) noexcept nogil:
    """Write a row's classes and counts above 0, by rising class; return their number, at most `n_classes`."""
    cdef const double* dense
    cdef const Cell* cell
    cdef uint64_t i, n = 0
    if not table.sparse:
        dense = table.counts + row * table.n_classes
        for i in range(table.n_classes):
            if dense[i] > 0.0:
                classes[n], counts[n] = <uint32_t>i, dense[i]
                n += 1
        return n
    n, cell = table.sparse_rows[row].n, table.cells + table.sparse_rows[row].first
    for i in range(n):
        classes[i], counts[i] = cell[i].c, cell[i].count
    return n


cdef inline double sum_of_row(const Table* table, uint64_t row) noexcept nogil:
    """Return the sum of a row's counts, from the first class to the last."""
    cdef const Cell* cell
    cdef uint64_t i
    cdef double total = 0.0
    if not table.sparse:
        for i in range(table.n_classes):
            total += table.counts[row * table.n_classes + i]
        return total
    cell = table.cells + table.sparse_rows[row].first
    for i in range(table.sparse_rows[row].n):
        total += cell[i].count
    return total


cdef inline uint64_t place_in(const Cell* cells, uint64_t n, uint64_t c) noexcept nogil:
    """Return the place of the first of n cells whose class is at least c."""
    cdef uint64_t low = 0, middle
    while low < n:
        middle = (low + n) // 2
        if cells[middle].c < c:
            low = middle + 1
        else:
            n = middle
    return low


cdef inline double* find_count(const Table* table, uint64_t row, uint64_t c) noexcept nogil:
    """Return where a class's count is in a row, or NULL if the row holds none for it."""
    cdef Cell* cells
    cdef uint64_t place
    if not table.sparse:
        return table.counts + row * table.n_classes + c
    cells = table.cells + table.sparse_rows[row].first
    place = place_in(cells, table.sparse_rows[row].n, c)
    return &cells[place].count if place < table.sparse_rows[row].n and cells[place].c == c else NULL


cdef inline uint64_t cells_for(const Table* table, int64_t row) noexcept nogil:
    """Return the most new cells that one more count in a row may take; a row below 0 is a new one."""
    cdef uint64_t n
    if not table.sparse:
        return 0
    n = table.sparse_rows[row].n if row >= 0 else 0
    return (2 * n if n else 1) if n & (n - 1) == 0 else 0


cdef inline double* count_of(Table* table, uint64_t row, uint64_t c) noexcept nogil:
    """Return where a class's count is in a row, after making one of 0 if there is none: `has_room` was true."""
    cdef Row* head
    cdef Cell* cells
    cdef uint64_t place, moved
    if not table.sparse:
        return table.counts + row * table.n_classes + c
    head = table.sparse_rows + row
    cells = table.cells + head.first
    place = place_in(cells, head.n, c)
    if place < head.n and cells[place].c == c:
        return &cells[place].count
    if head.n & (head.n - 1) == 0:  # the block is full
        moved = new_block(table, 2 * head.n if head.n else 1)
        memcpy(table.cells + moved, cells, head.n * sizeof(Cell))
        if head.n:
            free_block(table, head.first, head.n)
        head.first = <uint32_t>moved
        cells = table.cells + moved
    memmove(cells + place + 1, cells + place, (head.n - place) * sizeof(Cell))
    cells[place].c, cells[place].count = <uint32_t>c, 0.0
    head.n += 1
    table.cells_counted += 1
    return &cells[place].count


cdef inline uint64_t new_block(Table* table, uint64_t room) noexcept nogil:
    """Return the first cell of an unused block; the memory for it is there."""
    cdef int k = size_class(room)
    cdef uint64_t first = table.free_blocks[k]
    table.cells_held += room
    if first:
        table.free_blocks[k] = table.cells[first - 1].c
        return first - 1
    first = table.cells_used
    table.cells_used += room
    return first


cdef inline void free_block(Table* table, uint64_t first, uint64_t room) noexcept nogil:
    """Give a block to the rows to come."""
    cdef int k = size_class(room)
    table.cells[first].c = table.free_blocks[k]
    table.free_blocks[k] = <uint32_t>(first + 1)
    table.cells_held -= room


cdef inline void free_row(Table* table, uint64_t row) noexcept nogil:
    """Take all counts from a row."""
    cdef Row* head = table.sparse_rows + row
    table.cells_counted -= head.n
    if head.n:
        free_block(table, head.first, room_of(head.n))
    head.n = 0


cdef inline void close_gaps(Table* table, uint64_t row) noexcept nogil:
    """Take the counts of 0 out of a row of cells, and free the part of its block that is not needed any more."""
    cdef Row* head = table.sparse_rows + row
    cdef Cell* cells = table.cells + head.first
    cdef uint64_t i, n = 0, room = room_of(head.n), kept
    for i in range(head.n):
        if cells[i].count > 0.0:
            cells[n] = cells[i]
            n += 1
    table.cells_counted -= head.n - n
    head.n = <uint32_t>n
    kept = room_of(n)
    while room > kept:
        if room == 1:
            free_block(table, head.first, 1)
            room = 0
        else:
            room //= 2
            free_block(table, head.first + room, room)


cdef inline void copy_cells(Table* table, Cell* into) noexcept nogil:
    """Copy all blocks end to end, in the order of their rows; after that none is free."""
    cdef uint64_t row, first = 0
    cdef Row* head
    for row in range(table.rows):
        head = table.sparse_rows + row
        memcpy(into + first, table.cells + head.first, head.n * sizeof(Cell))
        head.first = <uint32_t>first
        first += room_of(head.n)
    table.cells_used = first
    for row in range(32):
        table.free_blocks[row] = 0


cdef inline void write_cells(
    const Table* table, uint32_t* bounds, uint32_t* classes, double* counts
) noexcept nogil:
    """Write all rows' counts end to end: 0 and then where each row ends, and each count's class and value."""
    cdef uint64_t row, n = 0
    bounds[0] = 0
    for row in range(table.rows):
        n += read_row(table, row, classes + n, counts + n)
        bounds[row + 1] = <uint32_t>n


cdef inline void append_cells(
    Table* table, uint64_t row, const uint32_t* classes, const double* counts, uint64_t n
) noexcept nogil:
    """Fill a row with counts above 0, by rising class; the memory for it is there."""
    cdef Row* head = table.sparse_rows + row
    cdef Cell* cells
    cdef uint64_t i
    head.first = <uint32_t>new_block(table, room_of(n)) if n else 0
    head.n = <uint32_t>n
    cells = table.cells + head.first
    for i in range(n):
        cells[i].c, cells[i].count = classes[i], counts[i]
    table.cells_counted += n
