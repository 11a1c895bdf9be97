# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
# Twin of: streamnb.naive_bayes.statistics.counts
"""The compiled count store: all views in one hash table.

A batch that runs without the GIL may move the table's memory. So each store has a lock: a batch holds it from
its first message to its last, and every method here while it reads or writes the table.

The file is long because the store, its views and their rows share the table, and Cython keeps a class in one file.
"""

import os
import threading

import numpy as np

from streamnb.naive_bayes.statistics import counts as plain
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics import budget, count_arrays
from streamnb.naive_bayes.statistics import token_trust as plain_trust
from streamnb.naive_bayes.statistics.decay import FORGOTTEN as _FORGOTTEN
from streamnb.naive_bayes.statistics.view_counts import can_subtract
from streamnb.base import HINT, Digest, statement

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset

from streamnb.naive_bayes._kernel.budget cimport (
    CELL_BYTES, CLASS_BYTES, COUNT_BYTES, DENSE_CLASSES, TEXT_BYTES, TOKEN_BYTES, TRUST_BYTES, charge
)
from streamnb.naive_bayes._kernel.buffers cimport Buffer, found_under, resized
from streamnb.naive_bayes._kernel.cells cimport (
    append_cells, cells_for, close_gaps, close_row, copy_cells, count_of, find_count, free_row, open_row, read_row,
    room_of, sum_of_row, write_cells
)
from streamnb.naive_bayes._kernel.count_arrays cimport LANES, check_cells, check_rows, check_slots, is_text
from streamnb.naive_bayes._kernel.eviction cimport rarest
from streamnb.naive_bayes._kernel.digest cimport Statements
from streamnb.naive_bayes._kernel.kept_logs cimport is_exact
from streamnb.naive_bayes._kernel.tokenizer cimport SLACK
from streamnb.naive_bayes._kernel.table cimport (
    HASH_VERSION, Cell, Row, Table, find, has_room, hash_bytes, insert, move_rows, place_rows, size_of, start_of,
    view_of
)


cdef enum:
    AT_ONCE = 65536  # a smaller table moves at once, in about a millisecond
    SLOTS_MIN = 256
    TRUST = 8  # bytes of a token's two numbers
    SPARE = 65536  # memory of fewer rows or bytes is not worth freeing

cdef uint64_t CELLS_MAX = 0xFFFFFFFF  # cells are numbered in 32 bits

cdef double FORGOTTEN = _FORGOTTEN
# What C needs while it compiles cannot be read from the plain modules, so it is compared with them.
if (DENSE_CLASSES, TOKEN_BYTES, TEXT_BYTES, COUNT_BYTES, TRUST_BYTES, CELL_BYTES, CLASS_BYTES) != (
    budget.DENSE_CLASSES,
    budget.TOKEN_BYTES,
    budget.TEXT_BYTES,
    budget.COUNT_BYTES,
    budget.TRUST_BYTES,
    budget.CELL_BYTES,
    budget.CLASS_BYTES,
):
    raise ImportError("it was compiled with other constants than `statistics.budget` has")

_SLACK = bytes(SLACK)


cdef class Rows:
    """A view's rows as a mapping of token to list of counts, for Python code."""

    cdef CountStore store
    cdef uint64_t view

    def __cinit__(self, CountStore store, uint64_t view):
        self.store = store
        self.view = view

    def __len__(self):
        return self.store.table.known[self.view]

    def __contains__(self, str token):
        with self.store.lock:
            return self._find(token) >= 0

    def __eq__(self, other):
        return dict(self.items()) == dict(other.items()) if hasattr(other, "items") else NotImplemented

    def get(self, str token, default=None):
        """Return the counts of a token, or `default`."""
        cdef int64_t row
        with self.store.lock:
            row = self._find(token)
            return default if row < 0 else self._row(row)

    def __getitem__(self, str token):
        counts = self.get(token)
        if counts is None:
            raise KeyError(token)
        return counts

    def __iter__(self):
        for token, _ in self.items():
            yield token

    def items(self):
        """Yield tokens and counts, oldest first.

        Raises
        ------
        RuntimeError
            The store changed while it was read.
        """
        cdef uint64_t row = 0, rows = self.store.table.rows, moves = self.store.moves
        cdef Table* table = &self.store.table
        while row < rows:
            with self.store.lock:
                if table.rows != rows or self.store.moves != moves:
                    raise RuntimeError("the count store changed while it was read")
                found = None
                if view_of(table, row) == self.view:
                    token = table.arena[start_of(table, row) : start_of(table, row + 1)]
                    found = token.decode(), self._row(row)
            if found is not None:
                yield found
            row += 1

    def keys(self):
        """Return an iterator over the tokens, oldest first."""
        return iter(self)

    def values(self):
        """Yield the counts of each token, oldest first."""
        for _, counts in self.items():
            yield counts

    def columns(self):
        """Return the counts above 0 of each class: a list of C float64 arrays, oldest token first."""
        cdef Table* table = &self.store.table
        cdef uint64_t n = 0, rows = table.rows
        cdef uint64_t most = table.cells_counted if table.sparse else rows * table.n_classes
        with self.store.lock:
            classes, counts = np.empty(most + 1, np.uint32), np.empty(most + 1)
            self._read_all(classes, counts, &n)
        by_class = np.argsort(classes[:n], kind="stable")
        ends = np.searchsorted(classes[:n][by_class], np.arange(1, table.n_classes, dtype=np.uint32))
        return np.split(counts[:n][by_class], ends)[: table.n_classes]  # a model without classes has no columns

    cdef _read_all(self, uint32_t[::1] classes, double[::1] counts, uint64_t* n):
        """Write the classes and counts above 0 of all the view's rows; both arrays have room for one more."""
        cdef const Table* table = &self.store.table
        cdef uint64_t row
        for row in range(table.rows):
            if view_of(table, row) == self.view:
                n[0] += read_row(table, row, &classes[n[0]], &counts[n[0]])

    cdef int64_t _find(self, str token) except -2:
        cdef bytes data = token.encode() + _SLACK
        cdef const uint8_t* start = data
        cdef Table* table = &self.store.table
        cdef uint64_t size = len(data) - SLACK
        return find(table, start, size, self.view, hash_bytes(start, size, table.seed + self.view))

    cdef list _row(self, uint64_t row):
        cdef const Table* table = &self.store.table
        cdef const double* counts = open_row(table, row)
        cdef uint64_t c
        found = [counts[c] for c in range(table.n_classes)]
        close_row(table, row)
        return found


cdef class Trust:
    """The trust of one view's tokens; see `streamnb.naive_bayes.statistics.token_trust.TokenTrust`."""

    cdef CountStore store
    cdef Rows rows

    def __cinit__(self, CountStore store, Rows rows):
        self.store = store
        self.rows = rows

    def get(self, str token):
        """Return a token's trust and the sum of its squared gradients; zeros if none was learned."""
        cdef Table* table = &self.store.table
        cdef int64_t row
        with self.store.lock:
            row = self.rows._find(token) if table.trusts else -1
            return plain_trust.NO_TRUST if row < 0 else (table.trust[2 * row], table.trust[2 * row + 1])

    def set(self, str token, double trust, double squares):
        """Set both numbers of a token that the view has counted; for another one, do nothing."""
        cdef Table* table = &self.store.table
        cdef int64_t row
        with self.store.lock:
            row = self.rows._find(token) if table.trusts else -1
            if row >= 0:
                table.trust[2 * row], table.trust[2 * row + 1] = <float>trust, <float>squares

    def items(self):
        """Yield each token whose trust was learned, with both numbers; oldest token first."""
        for token in self.rows if self.store.table.trusts else ():
            trust, squares = self.get(token)
            if trust or squares:
                yield token, trust, squares


cdef class ViewCounts:
    """The counts of one view; see `streamnb.naive_bayes.statistics.view_counts.ViewCounts`."""

    cdef CountStore store
    cdef uint64_t view
    cdef readonly Rows rows
    cdef readonly Trust trust

    def __cinit__(self, CountStore store, uint64_t view):
        self.store = store
        self.view = view
        self.rows = Rows(store, view)
        self.trust = Trust(store, self.rows)

    @property
    def totals(self):
        """Per class, the sum of its counts."""
        cdef Table* table = &self.store.table
        cdef uint64_t c
        with self.store.lock:
            return [table.totals[self.view * table.n_classes + c] for c in range(table.n_classes)]

    def add(self, features, class_index, weight=1.0):
        """Count a message's features for one class."""
        cdef uint64_t c = self._class(class_index)
        cdef double total = 0.0
        with self.store.lock:
            for token, f in features.items():
                total += self._add(token, c, f * weight)
            self.store.table.totals[self.view * self.store.table.n_classes + c] += total

    def remove(self, features, class_index, weight=1.0):
        """Undo `add`; rows without a count above 0 leave the table."""
        cdef Table* table = &self.store.table
        cdef uint64_t c = self._class(class_index)
        cdef int64_t row
        cdef double* total
        cdef double* count
        cdef double n, removed = 0.0
        cdef bint emptied = False
        with self.store.lock:
            rows = []
            for token, f in features.items():
                row = self.rows._find(token)
                n = f * weight
                count = find_count(table, row, c) if row >= 0 else NULL
                if (count[0] if count != NULL else 0.0) < n:
                    raise ValueError(
                        f"cannot unlearn {token!r}: its learned weight is smaller than the weight to remove; "
                        "nothing was changed"
                    )
                if n:
                    rows.append((row, n))
            for row, n in rows:
                count = find_count(table, row, c)
                count[0] -= n
                removed += n
                if table.sparse and not count[0] > 0.0:
                    close_gaps(table, row)
                emptied = emptied or not sum_of_row(table, row) > 0.0
            total = table.totals + self.view * table.n_classes + c
            if can_subtract(total[0], removed):
                total[0] = total[0] - removed
            else:
                total[0] = self._sum(c)
            if emptied:
                self.store.drop(self.store._empty_rows())

    def merge(self, other, classes):
        """Add another view's counts; see `streamnb.naive_bayes.statistics.view_counts.ViewCounts.merge`."""
        cdef Table* table = &self.store.table
        indices = [self._class(c) for c in classes]
        with self.store.lock:
            for token, counts in other.rows.items():
                for c, n in zip(indices, counts):
                    self._add(token, c, n)
            for c, n in zip(indices, other.totals):
                table.totals[self.view * table.n_classes + <uint64_t>c] += n

    cdef double _sum(self, uint64_t c):
        """Return the sum of a class's counts over the view's rows, from the first to the last."""
        cdef Table* table = &self.store.table
        cdef uint64_t row
        cdef const double* count
        cdef double total = 0.0
        for row in range(table.rows):
            if view_of(table, row) == self.view:
                count = find_count(table, row, c)
                total += count[0] if count != NULL else 0.0
        return total

    cdef uint64_t _class(self, index) except? 0:
        if not 0 <= index < self.store.table.n_classes:
            raise IndexError(f"there is no class {index} of {self.store.table.n_classes}")
        return index

    cdef double _add(self, str token, uint64_t c, double n) except? -1:
        """Add to one count, which may be a new one; return the amount added."""
        cdef Table* table = &self.store.table
        cdef bytes data
        cdef const uint8_t* start
        cdef uint64_t h, size
        cdef int64_t row
        if n == 0:
            return 0.0
        data = token.encode() + _SLACK
        start = data
        size = len(data) - SLACK
        h = hash_bytes(start, size, table.seed + self.view)
        row = find(table, start, size, self.view, h)
        if not has_room(table, row < 0, size if row < 0 else 0, cells_for(table, row)):
            self.store.grow(row < 0, size if row < 0 else 0, cells_for(table, row))
        if row < 0:
            row = insert(table, start, size, self.view, h)
        count_of(table, row, c)[0] += n
        return n


cdef class CountStore:
    """The counts of all count views; see `streamnb.naive_bayes.statistics.counts.CountStore`."""

    def __cinit__(self, views, max_tokens=None, bytes_max=None, *, trusts=False):
        self.max_tokens, self.bytes_max = max_tokens, bytes_max
        self.evicted_tokens, self.evicted_mass, self.fell_short, self.worths = 0, 0.0, 0, {}
        self.lock = threading.RLock()
        self.table.n_views, self.table.trusts = len(views), trusts
        self.table.seed = int.from_bytes(os.urandom(8), "little")
        self.table.totals = <double*>calloc(1, sizeof(double))
        self.table.opened = <double*>calloc(1, sizeof(double))
        self.table.known = <uint64_t*>calloc(self.table.n_views + 1, sizeof(uint64_t))
        if not (self.table.totals and self.table.opened and self.table.known):
            raise MemoryError("no memory for a count store")
        self.slots, self.counts = _owned(Buffer(SLOTS_MIN * 4)), _owned(Buffer(0))
        self.bounds, self.arena = _owned(Buffer(8)), _owned(Buffer(0))
        self.trust, self.sparse_rows, self.cells = _owned(Buffer(0)), _owned(Buffer(0)), _owned(Buffer(0))
        self._point()
        self.views = {view: ViewCounts(self, i) for i, view in enumerate(views)}

    def __dealloc__(self):
        free(self.table.totals)
        free(self.table.opened)
        free(self.table.known)

    def __reduce__(self):
        figures = (self.evicted_tokens, self.evicted_mass, self.fell_short, self.worths)
        limits = (self.max_tokens, self.bytes_max, self.trusts)
        return _thawed, (list(self.views), limits, self.freeze(), self.table.n_classes, figures)

    def __getitem__(self, view):
        return self.views[view]

    def __iter__(self):
        return iter(self.views)

    def __len__(self):
        return self.table.rows

    @property
    def trusts(self):
        """Whether a calibrated head learns how far to trust each token."""
        return bool(self.table.trusts)

    # ---- memory

    @property
    def nbytes(self):
        """Bytes of all arrays, with their room to grow and the copies of the last freeze."""
        cdef Buffer buffer
        cdef uint64_t total = self.table.n_views * (self.table.n_classes + 1) * 8 + self.table.n_classes * 8
        for buffer in (
            self.slots, self.old_slots, self.counts, self.trust, self.sparse_rows, self.cells, self.bounds, self.arena,
            self.still_counts, self.still_trust, self.still_classes, self.still_bounds, self.still_slots,
        ):
            total += buffer.size if buffer is not None else 0
        return total

    def charge(self, tokens=0, text_bytes=0, cells=0):
        """Return the bytes charged to the budget, with as many more tokens, bytes of text and cells."""
        return charge(&self.table, tokens, text_bytes, cells)

    cdef _point(self):
        """Point the table at its buffers."""
        cdef Table* table = &self.table
        table.slots, table.mask = <uint32_t*>self.slots.data, self.slots.size // 4 - 1
        table.old_slots, table.old_mask = NULL, 0
        if self.old_slots is not None:
            table.old_slots, table.old_mask = <uint32_t*>self.old_slots.data, self.old_slots.size // 4 - 1
        table.counts, table.bounds = <double*>self.counts.data, <uint64_t*>self.bounds.data
        table.trust = <float*>self.trust.data
        table.sparse_rows, table.cells = <Row*>self.sparse_rows.data, <Cell*>self.cells.data
        table.cells_capacity = self.cells.size // sizeof(Cell)
        table.arena = self.arena.data
        table.rows_capacity, table.arena_capacity = self.bounds.size // 8 - 1, self.arena.size

    cdef grow(self, uint64_t rows, uint64_t size, uint64_t cells):
        """Make room for that many more rows, bytes of tokens and cells; nothing else changes."""
        cdef Table* table = &self.table
        cdef uint64_t needed = table.rows + rows
        cdef uint64_t capacity, slots = table.mask + 1
        cdef Buffer fresh
        if needed > table.rows_capacity:  # the bounds define it, so they come last in case there is no memory
            capacity = _capacity(table.rows_capacity, needed)
            if table.sparse:
                self.sparse_rows = _owned(resized(self.sparse_rows, capacity * sizeof(Row)))
            else:
                self.counts = _owned(resized(self.counts, capacity * table.n_classes * 8))
            self._point()
            if table.trusts:
                self.trust = _owned(resized(self.trust, capacity * TRUST))
                self._point()
            self.bounds = _owned(resized(self.bounds, (capacity + 1) * 8))
            self._point()
        if table.sparse and table.cells_used + cells > table.cells_capacity:
            if 3 * table.cells_held < 2 * table.cells_used:  # a third of the cells are free, but in small blocks
                self._pack(cells)
            else:
                self._place(resized(self.cells, _cells_size(table.cells_capacity, table.cells_used + cells)))
        if start_of(table, table.rows) + size > table.arena_capacity:
            capacity = _capacity(table.arena_capacity, start_of(table, table.rows) + size)
            self.arena = _owned(resized(self.arena, capacity))
            self._point()
        if needed * 10 > slots * 7:
            while needed * 10 > slots * 7:
                slots *= 2
            if slots > <uint64_t>1 << 32:
                raise MemoryError("a count store holds at most 3 billion tokens")
            fresh = _owned(Buffer(slots * 4))
            self._point()
            move_rows(table, table.moving)  # a message so large that the last move has not finished
            self.old_slots, self.slots = self.slots, fresh
            table.moved, table.moving = 0, table.rows
        self._point()
        if table.moved < table.moving and table.moving <= AT_ONCE:
            move_rows(table, table.moving)
        self.tidy()

    cdef _place(self, Buffer cells):
        """Use other memory for the cells."""
        self.cells = _owned(cells)
        self._point()

    cdef _pack(self, uint64_t cells):
        """Copy the blocks of all rows end to end, with room for that many more cells."""
        cdef Buffer packed = Buffer(_cells_size(self.table.cells_held, self.table.cells_held + cells))
        copy_cells(&self.table, <Cell*>packed.data)
        self._place(packed)

    cdef tidy(self):
        """Free the old slots once all rows have moved."""
        if self.table.moved == self.table.moving:
            self.old_slots = None
            self.table.old_slots, self.table.moved, self.table.moving = NULL, 0, 0

    cdef widen(self):
        """Add a class: every row and every view's totals get a count of 0."""
        cdef Table* table = &self.table
        cdef uint64_t C = table.n_classes, row, view
        cdef double* opened = <double*>calloc(C + 2, sizeof(double))
        cdef double* totals = <double*>calloc(table.n_views * (C + 1) + 1, sizeof(double))
        if opened == NULL or totals == NULL:
            free(opened)
            free(totals)
            raise MemoryError("no memory for another class")
        try:
            if C == DENSE_CLASSES:
                self._make_sparse()
            elif not table.sparse:
                self._widen_rows()
        except MemoryError:
            free(opened)
            free(totals)
            raise
        for view in range(table.n_views):
            memcpy(totals + view * (C + 1), table.totals + view * C, C * sizeof(double))
        free(table.totals)
        free(table.opened)
        table.totals, table.opened = totals, opened
        table.n_classes = C + 1

    cdef _widen_rows(self):
        """Give every row one more count."""
        cdef Table* table = &self.table
        cdef uint64_t C = table.n_classes, row
        cdef Buffer counts = _owned(Buffer(table.rows_capacity * (C + 1) * 8))
        cdef double* rows = <double*>counts.data
        for row in range(table.rows):
            memcpy(rows + row * (C + 1), table.counts + row * C, C * sizeof(double))
        self.counts = counts
        self._point()

    cdef _make_sparse(self):
        """Turn rows of all classes into blocks of counts above 0."""
        cdef Table* table = &self.table
        cdef uint64_t row, n, needed = 0
        cdef uint32_t[::1] classes = np.empty(table.n_classes, np.uint32)
        cdef double[::1] counts = np.empty(table.n_classes)
        for row in range(table.rows):
            n = read_row(table, row, &classes[0], &counts[0])
            needed += room_of(n)
        self.sparse_rows = _owned(Buffer(table.rows_capacity * sizeof(Row)))
        self._place(Buffer(_cells_size(needed, needed)))
        for row in range(table.rows):
            n = read_row(table, row, &classes[0], &counts[0])
            append_cells(table, row, &classes[0], &counts[0], n)
        table.sparse = True
        self.counts, self.still_counts = _owned(Buffer(0)), None
        self._point()

    def add_class(self):
        """Append a class to every view."""
        with self.lock:
            self.widen()

    def merge(self, other, classes):
        """Add another store of the same views."""
        plain.CountStore.merge(self, other, classes)

    # ---- decay and eviction

    def fade(self, factor):
        """Multiply all counts; drop tokens with too little left, and sum the totals again."""
        with self.lock:
            self.fade_by(factor)

    cdef fade_by(self, double factor):
        """Do the work of `fade`. All memory is allocated before anything changes."""
        cdef Table* table = &self.table
        cdef uint64_t i, row, n, into, n_gone = 0, C = table.n_classes
        cdef double least = 0.0 if factor >= 1.0 else FORGOTTEN
        cdef double* count
        cdef bint left
        gone = np.empty(table.rows, np.int64)
        cdef int64_t[::1] rows = gone
        cdef uint32_t[::1] classes = np.empty(C + 1, np.uint32)
        cdef double[::1] counts = np.empty(C + 1)
        for row in range(table.rows):
            left = False
            n = read_row(table, row, &classes[0], &counts[0])
            for i in range(n):
                left = left or counts[i] * factor >= least
            if not left:
                rows[n_gone] = <int64_t>row
                n_gone += 1
        if n_gone:
            self.drop(gone[:n_gone])
        for i in range(table.n_views * C):
            table.totals[i] = 0.0
        for row in range(table.rows):
            into = view_of(table, row) * C
            n = read_row(table, row, &classes[0], &counts[0])
            for i in range(n):
                count = find_count(table, row, classes[i])
                count[0] = counts[i] * factor
                if count[0] < least:
                    count[0] = 0.0
                table.totals[into + classes[i]] += count[0]
            if table.sparse:
                close_gaps(table, row)
            if table.trusts:
                table.trust[2 * row + 1] = <float>(table.trust[2 * row + 1] * factor)

    def make_room(self, features):
        """Evict rare tokens until a message's new ones fit under the limits."""
        plain.CountStore.make_room(self, features)

    def surplus(self, features):
        """Return how many tokens to evict before a message with these features is learned."""
        return plain.CountStore.surplus(self, features)

    def evict(self, n):
        """Evict the `n` tokens with the smallest counts, oldest first, and correct the totals."""
        with self.lock:
            return self._evict(n)

    def _evict(self, n):
        cdef Table* table = &self.table
        cdef uint64_t row, i, n_counts, C = table.n_classes
        cdef double mass, left
        cdef double* totals
        cdef uint32_t[::1] classes = np.empty(C + 1, np.uint32)
        cdef double[::1] counts = np.empty(C + 1)
        rounded = {i for i in range(table.n_views * C) if not is_exact(table.totals[i])}
        gone = rarest(table, n, [self.worths.get(view, 1.0) for view in self.views])
        for row in gone.tolist():
            mass, totals = 0.0, table.totals + view_of(table, row) * C
            n_counts = read_row(table, row, &classes[0], &counts[0])
            for i in range(n_counts):
                mass += counts[i]
                if not is_exact(counts[i]):
                    rounded.add(view_of(table, row) * C + classes[i])
                left = totals[classes[i]] - counts[i]
                totals[classes[i]] = left if left > 0.0 else 0.0
            self.evicted_mass += mass
        self.evicted_tokens += n
        self.drop(np.sort(gone))
        views = list(self.views.values())
        for i in rounded:  # subtraction would leave the rounding of a heavy weight behind
            table.totals[i] = (<ViewCounts>views[i // C])._sum(i % C)

    def _empty_rows(self):
        """Return the rows without a count above 0."""
        cdef const Table* table = &self.table
        cdef uint64_t row
        return np.array([row for row in range(table.rows) if not sum_of_row(table, row) > 0.0], np.int64)

    cdef drop(self, gone):
        """Remove some rows, given in order, and close the gaps."""
        cdef const int64_t[::1] rows = gone
        cdef Table* table = &self.table
        cdef uint64_t row, start = 0, end, size, view, at = 0, last = 0, next = 0, C = table.n_classes
        self.arena = _owned(resized(self.arena, self.arena.size))  # a copy, if an array shows this one
        self.bounds = _owned(resized(self.bounds, self.bounds.size))
        self.counts = _owned(resized(self.counts, self.counts.size))
        self.trust = _owned(resized(self.trust, self.trust.size))
        self.old_slots = None
        self._point()
        table.moved = table.moving = 0
        with nogil:
            for row in range(table.rows):
                end, view = table.bounds[row + 1] >> 8, view_of(table, row)
                size = end - start
                if next == <uint64_t>rows.shape[0] or <uint64_t>rows[next] != row:
                    memmove(table.arena + at, table.arena + start, size)
                    if table.sparse:
                        table.sparse_rows[last] = table.sparse_rows[row]
                    else:
                        memmove(table.counts + last * C, table.counts + row * C, C * sizeof(double))
                    if table.trusts:
                        memmove(table.trust + 2 * last, table.trust + 2 * row, TRUST)
                    at += size
                    last += 1
                    table.bounds[last] = at << 8 | view
                else:
                    next += 1
                    table.known[view] -= 1
                    if table.sparse:
                        free_row(table, row)
                start = end
            table.rows = last
        self._shrink()
        with nogil:
            memset(table.slots, 0, (table.mask + 1) * 4)
            place_rows(table, 0, last)
        self.moves += 1

    cdef _shrink(self):
        """Free memory that less than three quarters of are used: the budget may go to other things from now on."""
        cdef Table* table = &self.table
        cdef uint64_t rows = _capacity(table.rows, table.rows), text = start_of(table, table.rows), slots = table.mask + 1
        if (text + SPARE) * 4 < table.arena_capacity * 3:
            self.arena = _owned(resized(self.arena, _capacity(text, text)))
        if (table.rows + SPARE) * 4 < table.rows_capacity * 3:
            if table.sparse:
                self.sparse_rows = _owned(resized(self.sparse_rows, rows * sizeof(Row)))
            else:
                self.counts = _owned(resized(self.counts, rows * table.n_classes * 8))
            if table.trusts:
                self.trust = _owned(resized(self.trust, rows * TRUST))
            self.bounds = _owned(resized(self.bounds, (rows + 1) * 8))
        self._point()
        if (table.cells_held + SPARE) * 2 < table.cells_capacity:
            self._pack(0)
        while slots > SLOTS_MIN and table.rows * 40 < slots * 7:  # a quarter of what half the slots could hold
            slots //= 2
        if slots < table.mask + 1:
            self.slots = _owned(resized(self.slots, slots * 4))
        if self.still_counts is not None and not self.still_counts.exports:
            self.still_counts = self.still_classes = self.still_bounds = None
        if self.still_trust is not None and not self.still_trust.exports:
            self.still_trust = None
        if self.still_slots is not None and not self.still_slots.exports:
            self.still_slots = None
        self._point()

    def merge_trust(self, other, start=0.0):
        """Add the trust that another store has learned, after its counts were merged; see `add_trust`."""
        plain.CountStore.merge_trust(self, other, start)

    # ---- digest

    def trust_digest(self, sections=None):
        """Return the digest of the trust of all tokens; see the plain twin."""
        digest = Digest()
        if self.table.trusts:
            heads = [statement("trust", view) for view in self.views]
            if sections is not None:
                digest.add_sum(Statements(heads, [b""]).sum_of_trust(sections))
            else:
                with self.lock:
                    shown = self._shown() | {plain_trust.TRUST_SECTION: self._trust_shown(self.trust)}
                    digest.add_sum(Statements(heads, [b""]).sum_of_trust(shown))
        return digest

    def digest(self, classes, sections=None):
        """Return the digest of all rows and totals, by the classes' names; see the plain twin."""
        if sections is not None:
            return self._digest(classes, sections)
        with self.lock:
            return self._digest(classes, self._shown() | self._cells())

    def _digest(self, classes, sections):
        statements = Statements(
            [statement("count", view) for view in self.views], [statement(class_name) for class_name in classes]
        )
        digest = Digest()
        digest.add_sum(statements.sum_of(sections))
        for view, totals in zip(self.views, sections["totals"].tolist()):
            for class_name, total in zip(classes, totals):
                if total != 0:
                    digest.add(statement("total", view, class_name), total)
        return digest

    # ---- freeze and restore

    def freeze(self):
        """Return the store as arrays that no later learning changes: tokens shown, counts and index copied."""
        with self.lock:
            return self._freeze()

    def _freeze(self):
        cdef Table* table = &self.table
        self.tidy()
        frozen = self._shown()
        if table.sparse:
            frozen |= self._cells()
        else:
            self.still_counts = _copied(self.still_counts, self.counts, table.rows * table.n_classes * 8)
            frozen["counts"] = _shown(self.still_counts, np.float64, table.rows, frozen["counts"].shape[1])
        if table.trusts:
            self.still_trust = _copied(self.still_trust, self.trust, table.rows * TRUST)
            frozen[plain_trust.TRUST_SECTION] = self._trust_shown(self.still_trust)
        self.still_slots = _copied(self.still_slots, self.slots, self.slots.size)
        frozen["index"] = _shown(self.still_slots, np.uint32, self.slots.size // 4)
        state = [HASH_VERSION, table.seed, table.moved, table.moving]
        frozen["index_state"] = np.array(state, np.uint64)
        if self.old_slots is not None:
            frozen["index_before"] = _shown(self.old_slots, np.uint32, self.old_slots.size // 4)
        return frozen

    def _shown(self):
        """Return the store as arrays over its own memory."""
        cdef Table* table = &self.table
        cdef uint64_t C = table.n_classes if table.n_views else 0
        totals = np.zeros((table.n_views, C))
        cdef double[:, ::1] totals_view = totals
        if totals.size:
            memcpy(&totals_view[0, 0], table.totals, totals.nbytes)
        shown = {
            "token_bytes": _shown(self.arena, np.uint8, start_of(table, table.rows)),
            "token_bounds": _shown(self.bounds, np.uint64, table.rows + 1),
            "totals": totals,
        }
        return shown if table.sparse else shown | {"counts": _shown(self.counts, np.float64, table.rows, C)}

    cdef _trust_shown(self, Buffer buffer):
        return _shown(buffer, np.float32, self.table.rows, 2)

    def _cells(self):
        """Return the cells as arrays, written into the buffers that the last call filled; nothing for dense rows."""
        cdef Table* table = &self.table
        if not table.sparse:
            return {}
        self.still_bounds = _reused(self.still_bounds, (table.rows + 1) * 4)
        self.still_classes = _reused(self.still_classes, table.cells_counted * 4)
        self.still_counts = _reused(self.still_counts, table.cells_counted * 8)
        cdef uint32_t* bounds = <uint32_t*>self.still_bounds.data
        cdef uint32_t* classes = <uint32_t*>self.still_classes.data
        cdef double* counts = <double*>self.still_counts.data
        with nogil:
            write_cells(table, bounds, classes, counts)
        return {
            "cell_bounds": _shown(self.still_bounds, np.uint32, table.rows + 1),
            "cell_classes": _shown(self.still_classes, np.uint32, table.cells_counted),
            "cell_counts": _shown(self.still_counts, np.float64, table.cells_counted),
        }

    def restore(self, sections, n_classes):
        """Replace the store with what `freeze` returned, after checking it.

        A section with a buffer of its own is taken over without a copy: it leaves `sections`, and its array
        must not be used any more.
        """
        with self.lock:
            fresh = type(self)(list(self.views), self.max_tokens, self.bytes_max, trusts=self.trusts)
            fresh._restore(sections, n_classes if self.views else 0)
            self._become(fresh)

    def _become(self, CountStore other):
        """Take over another store's content; the other store is unusable afterwards."""
        free(self.table.totals)
        free(self.table.opened)
        free(self.table.known)
        self.table = other.table
        other.table.totals, other.table.opened, other.table.known = NULL, NULL, NULL
        self.slots, self.old_slots, self.counts = other.slots, other.old_slots, other.counts
        self.trust, self.sparse_rows, self.cells = other.trust, other.sparse_rows, other.cells
        self.bounds, self.arena = other.bounds, other.arena
        self.still_counts = self.still_classes = self.still_bounds = self.still_slots = self.still_trust = None
        self.moves += 1

    def _restore(self, sections, n_classes):
        if not self._fits(sections, n_classes):
            plain.checked(sections, len(self.views), n_classes)  # which names the fault
            raise SnapshotError("The sections of the count store do not fit together.", HINT)
        cdef Table* table = &self.table
        trust = plain_trust.checked_trust(sections, table.rows) if table.trusts else None
        self.arena = _taken(sections, "token_bytes")
        self.bounds = _taken(sections, "token_bounds")
        if table.sparse:
            self._take_cells(sections)
        else:
            self.counts = _taken(sections, "counts")
        if table.trusts:
            self.trust = _owned(Buffer((self.bounds.size // 8 - 1) * TRUST))
            self._fill_trust(trust)
        has_index = self._take_index(sections)
        self._point()
        if not has_index:
            self._build_index()

    def _fill_trust(self, trust):
        """Copy the trust of the tokens, which is checked; without any, each starts with none."""
        cdef const float[::1] numbers
        memset(self.trust.data, 0, self.trust.size)
        if trust is not None and trust.size:
            numbers = np.ascontiguousarray(trust).reshape(-1)
            memcpy(self.trust.data, &numbers[0], trust.nbytes)

    def _take_cells(self, sections):
        """Fill the rows from the arrays of cells, which are checked."""
        cdef Table* table = &self.table
        cdef const uint32_t[::1] bounds = sections["cell_bounds"]
        cdef const uint32_t[::1] classes = np.append(sections["cell_classes"], np.uint32(0))  # never without an element
        cdef const double[::1] counts = np.append(sections["cell_counts"], 0.0)
        cdef uint64_t row, n, needed = 0
        for row in range(table.rows):
            needed += room_of(bounds[row + 1] - bounds[row])
        self.sparse_rows = _owned(Buffer((self.bounds.size // 8 - 1) * sizeof(Row)))
        self._place(Buffer(_cells_size(needed, needed)))
        for row in range(table.rows):
            n = bounds[row + 1] - bounds[row]
            append_cells(table, row, &classes[bounds[row]], &counts[bounds[row]], n)

    def _fits(self, sections, n_classes):
        """Return whether sections are a store of these views; if so, load rows, totals and known tokens."""
        cdef Table* table = &self.table
        cdef uint64_t C = n_classes
        cdef bint fits, sparse = C > DENSE_CLASSES
        kinds = {"token_bytes": np.uint8, "token_bounds": np.uint64, "totals": np.float64}
        if sparse:
            kinds |= {"cell_bounds": np.uint32, "cell_classes": np.uint32, "cell_counts": np.float64}
        else:
            kinds["counts"] = np.float64
        for key, kind in kinds.items():
            array = sections.get(key)
            if array is None or array.dtype != kind or not array.flags.c_contiguous:
                return False
        totals = sections["totals"]
        rows = len(sections["token_bounds"]) - 1
        if totals.shape != (table.n_views, C) or sections["token_bytes"].ndim != 1 or rows < 0:
            return False
        if sections["token_bounds"].ndim != 1 or not sparse and sections["counts"].shape != (rows, C):
            return False
        if sparse and count_arrays.check_cells(sections, C) != rows:
            return False
        cdef const uint8_t[::1] bytes_view = sections["token_bytes"]
        cdef const uint64_t[::1] bounds_view = sections["token_bounds"]
        cdef const double[::1] counts_view = sections["cell_counts"] if sparse else sections["counts"].reshape(-1)
        cdef const uint32_t[::1] classes_view = sections["cell_classes"] if sparse else np.empty(0, np.uint32)
        cdef const uint32_t[::1] cells_view = sections["cell_bounds"] if sparse else np.empty(0, np.uint32)
        cdef const double[::1] totals_view = totals.reshape(-1)
        cdef const uint8_t* blob = &bytes_view[0] if bytes_view.shape[0] else NULL
        cdef const double* first = &counts_view[0] if counts_view.shape[0] else NULL
        cdef const uint32_t* classes = &classes_view[0] if classes_view.shape[0] else NULL
        cdef const uint32_t* cells = &cells_view[0] if cells_view.shape[0] else NULL
        sums = np.empty(LANES * table.n_views * C)
        cdef double[::1] sums_view = sums
        cdef double* sums_at = &sums_view[0] if sums.size else NULL
        cdef uint64_t[::1] known = np.empty(LANES * table.n_views + 1, np.uint64)
        table.rows, table.n_classes, table.sparse = rows, C, sparse
        with nogil:
            if sparse:
                fits = check_cells(
                    &bounds_view[0], rows, bytes_view.shape[0], cells, classes, first, C, table.n_views, &known[0], sums_at
                )
            else:
                fits = check_rows(
                    &bounds_view[0], rows, bytes_view.shape[0], first, C, table.n_views, &known[0], sums_at
                )
            fits = fits and is_text(blob, bytes_view.shape[0], &bounds_view[0], table.rows)
        if not fits or not np.isfinite(totals).all() or (totals < 0).any():
            return False
        memcpy(table.known, &known[0], table.n_views * sizeof(uint64_t))
        free(table.totals)
        free(table.opened)
        table.opened = <double*>calloc(C + 1, sizeof(double))
        table.totals = <double*>calloc(table.n_views * C + 1, sizeof(double))
        if table.totals == NULL or table.opened == NULL:
            raise MemoryError("no memory for the classes of a snapshot")
        if totals.size:
            memcpy(table.totals, &totals_view[0], totals.nbytes)
        return np.allclose(sums[: totals.size].reshape(totals.shape), totals, rtol=1e-9, atol=1e-9)

    cdef bint _take_index(self, sections) except -1:
        """Take over the index that was frozen with the rows; False if there is none or another hash made it."""
        cdef Table* table = &self.table
        cdef uint64_t old_size = 0
        cdef const uint32_t* old = NULL
        cdef const uint32_t[::1] old_view
        index, state = sections.get("index"), sections.get("index_state")
        before = sections.get("index_before")
        if index is None or state is None or state.tolist()[:1] != [HASH_VERSION]:
            return False
        arrays = [index] if before is None else [index, before]
        if state.dtype != np.uint64 or state.shape != (4,) or any(a.dtype != np.uint32 or a.ndim != 1 for a in arrays):
            raise _foreign_index()
        cdef const uint32_t[::1] new_view = np.ascontiguousarray(index)
        if before is not None:
            old_view = np.ascontiguousarray(before)
            old_size = old_view.shape[0]
            old = &old_view[0] if old_size else NULL
        _, table.seed, table.moved, table.moving = state.tolist()
        if not new_view.shape[0] or not check_slots(
            &new_view[0], new_view.shape[0], old, old_size, table.rows, table.moved, table.moving
        ):
            raise _foreign_index()
        self.slots = _taken(sections, "index")
        if before is not None:
            self.old_slots = _taken(sections, "index_before")
        return True

    def _build_index(self):
        cdef Table* table = &self.table
        cdef uint64_t slots = SLOTS_MIN
        while table.rows * 10 > slots * 7:
            slots *= 2
        self.slots, self.old_slots = _owned(Buffer(slots * 4)), None
        table.moved = table.moving = 0
        self._point()
        with nogil:
            place_rows(table, 0, table.rows)
        self.check_index()

    def check_index(self):
        """Check that the index finds every token in its own row.

        Raises
        ------
        SnapshotError
            A token is not found, or is in two rows.
        """
        cdef Table* table = &self.table
        cdef uint64_t row, h
        cdef int64_t found = 0
        with self.lock, nogil:
            for row in range(table.rows):
                h = hash_bytes(
                    table.arena + start_of(table, row), size_of(table, row), table.seed + view_of(table, row)
                )
                found = find(table, table.arena + start_of(table, row), size_of(table, row), view_of(table, row), h)
                if found != <int64_t>row:
                    break
        if table.rows and found != <int64_t>row:
            raise plain.twice() if found >= 0 else _foreign_index()


def _foreign_index():
    return SnapshotError("The index of the count store does not match its rows.", HINT)


cdef Buffer _owned(Buffer buffer):
    """Mark a buffer as a store's, so that no other store takes it over."""
    buffer.owned = True
    return buffer


cdef uint64_t _capacity(uint64_t now, uint64_t needed):
    """Return the next capacity: half as much again if it is small, an eighth more if it is large, or `needed`."""
    cdef uint64_t more = now + (now >> 1 if now < AT_ONCE else now >> 3)
    return more if more > needed else needed


cdef uint64_t _cells_size(uint64_t now, uint64_t needed) except? 0:
    """Return the bytes of the next capacity for cells."""
    cdef uint64_t capacity = _capacity(now, needed)
    if capacity >= CELLS_MAX:
        raise MemoryError("a count store holds at most 4 billion counts")
    return capacity * sizeof(Cell)


cdef Buffer _copied(Buffer into, Buffer buffer, uint64_t size):
    """Copy a buffer's first bytes, into the buffer of the last copy unless an array still shows that one."""
    into = _reused(into, size)
    with nogil:
        memcpy(into.data, buffer.data, size)
    return into


cdef Buffer _reused(Buffer into, uint64_t size):
    """Return a buffer with room for that many bytes: the last copy's, unless an array still shows it."""
    if into is None or into.exports:
        return _owned(Buffer(size + (size >> 3)))
    return into if into.size >= size else resized(into, size + (size >> 3))


cdef _shown(Buffer buffer, dtype, uint64_t rows, columns=None):
    """Return the beginning of a buffer as a read-only array."""
    n = rows if columns is None else rows * columns
    array = np.frombuffer(buffer, dtype, n) if n else np.empty(0, dtype)
    array = array if columns is None else array.reshape(rows, columns)
    array.flags.writeable = False
    return array


cdef Buffer _taken(sections, key):
    """Return the buffer of a section: its own, if it was read into one, or else a copy."""
    cdef Buffer buffer = found_under(sections[key], sections[key].nbytes)
    cdef const uint8_t[::1] data
    if buffer is not None:
        del sections[key]
        return _owned(buffer)
    data = np.ascontiguousarray(sections[key]).reshape(-1).view(np.uint8)
    buffer = Buffer(data.shape[0])
    if data.shape[0]:
        memcpy(buffer.data, &data[0], data.shape[0])
    return _owned(buffer)


def _thawed(views, limits, sections, n_classes, figures):
    """Return a copy of a store from the arguments that `__reduce__` gave."""
    max_tokens, bytes_max, trusts = limits
    store = CountStore(views, max_tokens, bytes_max, trusts=trusts)
    store.restore(sections, n_classes)
    store.evicted_tokens, store.evicted_mass, store.fell_short, store.worths = figures
    return store
