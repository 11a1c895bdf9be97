# Twin of: streamnb.naive_bayes.statistics.budget
#
# What a count store is charged for its memory. `counts.pyx` compares the numbers with the plain ones.

from libc.stdint cimport uint64_t

from streamnb.naive_bayes._kernel.table cimport Table, start_of

cdef enum:
    DENSE_CLASSES = 8
    TOKEN_BYTES = 60
    TEXT_BYTES = 3
    COUNT_BYTES = 20
    TRUST_BYTES = 20
    CELL_BYTES = 48
    CLASS_BYTES = 1024


cdef inline uint64_t charge(
    const Table* table, uint64_t tokens, uint64_t text_bytes, uint64_t cells
) noexcept nogil:
    """Return the bytes that a table is charged for, with as many more tokens, bytes of text and cells."""
    cdef uint64_t C = table.n_classes, rows, token_bytes = <uint64_t>TOKEN_BYTES
    tokens += table.rows
    text_bytes += start_of(table, table.rows)
    if table.sparse:
        rows = (table.cells_held + cells) * <uint64_t>CELL_BYTES
    else:
        rows = tokens * C * <uint64_t>COUNT_BYTES
    if table.trusts:
        token_bytes += <uint64_t>TRUST_BYTES
    return tokens * token_bytes + text_bytes * <uint64_t>TEXT_BYTES + rows + C * <uint64_t>CLASS_BYTES
