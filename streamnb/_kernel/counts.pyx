# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
"""The compiled twin of `streamnb.counts`: the same store, in one hash table.

The table is memory that a batch may move while it runs without the GIL. So each store has a lock, which a
batch holds from its first message to its last, and every method here for as long as it looks at the table.
"""

import os
import threading

import numpy as np

from streamnb.counts import CountStore as PlainCountStore
from streamnb.counts import checked, twice
from streamnb.digest import Digest, name

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from streamnb._kernel.murmur cimport Hash128, murmur
from streamnb._kernel.tokens cimport SLACK, grow
from streamnb._kernel.table cimport Table, close_table, find, hash_bytes, insert, open_table, rebuild, reserve, widen


_SLACK = bytes(SLACK)


cdef class Rows:
    """A view's rows as a mapping of token to list of counts, for whoever does not live in C."""

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
        """The counts of a token, or `default`."""
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
        """Tokens and counts, oldest first.

        Raises
        ------
        RuntimeError
            The store changed meanwhile.
        """
        cdef uint64_t row = 0, rows = self.store.table.rows, moves = self.store.moves
        cdef Table* table = &self.store.table
        while row < rows:
            with self.store.lock:
                if table.rows != rows or self.store.moves != moves:
                    raise RuntimeError("the count store changed while it was read")
                found = None
                if table.views[row] == self.view:
                    token = table.arena[table.starts[row] : table.starts[row + 1]]
                    found = token.decode(), self._row(row)
            if found is not None:
                yield found
            row += 1

    def keys(self):
        """Tokens, oldest first."""
        return iter(self)

    def values(self):
        """Counts, oldest token's first."""
        for _, counts in self.items():
            yield counts

    cdef int64_t _find(self, str token) except -2:
        cdef bytes data = token.encode() + _SLACK
        cdef const uint8_t* start = data
        cdef Table* table = &self.store.table
        cdef uint64_t size = len(data) - SLACK
        return find(table, start, size, self.view, hash_bytes(start, size, table.seed + self.view))

    cdef list _row(self, uint64_t row):
        cdef Table* table = &self.store.table
        cdef uint64_t c
        return [table.counts[row * table.n_classes + c] for c in range(table.n_classes)]


cdef class ViewCounts:
    """The counts of one view; see `streamnb.counts.ViewCounts`."""

    cdef CountStore store
    cdef uint64_t view
    cdef readonly Rows rows

    def __cinit__(self, CountStore store, uint64_t view):
        self.store = store
        self.view = view
        self.rows = Rows(store, view)

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
        """Take a message's features back; rows that count nothing leave the table."""
        cdef Table* table = &self.store.table
        cdef uint64_t c = self._class(class_index)
        cdef double* total
        cdef double removed = 0.0
        cdef bint emptied = False
        with self.store.lock:
            rows = []
            for token, f in features.items():
                row = self.rows._find(token)
                n = f * weight
                if (table.counts[<uint64_t>row * table.n_classes + c] if row >= 0 else 0.0) < n:
                    raise ValueError(f"{token!r} was not learned that often; nothing was unlearned")
                if n:
                    rows.append((row, n))
            for row, n in rows:
                table.counts[<uint64_t>row * table.n_classes + c] -= n
                removed += n
                emptied = emptied or not any(self.rows._row(row))
            total = table.totals + self.view * table.n_classes + c
            total[0] = total[0] - removed if total[0] > removed else 0.0
            if emptied:
                self.store.keep(self.store.freeze()["counts"].any(axis=1))

    def merge(self, other, classes):
        """Add another view's counts; see `streamnb.counts.ViewCounts.merge`."""
        cdef Table* table = &self.store.table
        indices = [self._class(c) for c in classes]
        with self.store.lock:
            for token, counts in other.rows.items():
                for c, n in zip(indices, counts):
                    self._add(token, c, n)
            for c, n in zip(indices, other.totals):
                table.totals[self.view * table.n_classes + <uint64_t>c] += n

    cdef uint64_t _class(self, index) except? 0:
        if not 0 <= index < self.store.table.n_classes:
            raise IndexError(f"there is no class {index} of {self.store.table.n_classes}")
        return index

    cdef double _add(self, str token, uint64_t c, double n) except? -1:
        """Add to one count, which may be a new one; returns what was added."""
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
        if row < 0:
            if reserve(table, 1, size) != 0:
                raise MemoryError("no memory for another token")
            row = insert(table, start, size, self.view, h)
        table.counts[<uint64_t>row * table.n_classes + c] += n
        return n


cdef class CountStore:
    """The counts of all count views; see `streamnb.counts.CountStore`."""

    def __cinit__(self, views, max_tokens=None):
        self.max_tokens = max_tokens
        self.evicted_tokens, self.evicted_mass = 0, 0.0
        self.lock = threading.RLock()
        seed = int.from_bytes(os.urandom(8), "little")
        if open_table(&self.table, len(views), seed) != 0:
            raise MemoryError("no memory for a count store")
        self.views = {view: ViewCounts(self, i) for i, view in enumerate(views)}

    def __dealloc__(self):
        close_table(&self.table)

    def __reduce__(self):
        evicted = (self.evicted_tokens, self.evicted_mass)
        return _thawed, (list(self.views), self.max_tokens, self.freeze(), self.table.n_classes, evicted)

    def __getitem__(self, view):
        return self.views[view]

    def __iter__(self):
        return iter(self.views)

    def __len__(self):
        return self.table.rows

    def make_room(self, features):
        """Let go of rare tokens until a message's new ones fit under `max_tokens`."""
        PlainCountStore.make_room(self, features)

    def evict(self, n):
        """Let go of the `n` tokens with the smallest counts, and correct the totals."""
        with self.lock:
            return self._evict(n)

    def _evict(self, n):
        cdef Table* table = &self.table
        cdef uint64_t row, c, C = table.n_classes, at
        cdef double[::1] sums = np.zeros(table.rows)
        cdef uint64_t[::1] high = np.zeros(table.rows, np.uint64)
        cdef uint64_t[::1] low = np.zeros(table.rows, np.uint64)
        cdef Hash128 h
        cdef Statement statement = Statement([name(view) for view in self.views], [])
        for row in range(table.rows):
            for c in range(C):
                sums[row] += table.counts[row * C + c]
            at = statement.begin(table, row)
            h = murmur(statement.buffer, at)
            high[row], low[row] = h.high, h.low
        order = np.lexsort((low, high, sums))[:n]
        kept = np.ones(table.rows, np.uint8)
        kept[order] = 0
        for row in order.tolist():
            for c in range(C):
                total = table.totals[table.views[row] * C + c] - table.counts[row * C + c]
                table.totals[table.views[row] * C + c] = total if total > 0.0 else 0.0
            self.evicted_mass += sums[row]
        self.evicted_tokens += n
        self.keep(kept)

    def add_class(self):
        """Append a class to every view."""
        with self.lock:
            if widen(&self.table) != 0:
                raise MemoryError("no memory for another class")

    def merge(self, other, classes):
        """Add another store of the same views."""
        PlainCountStore.merge(self, other, classes)

    def digest(self, classes):
        """The digest of all rows and totals, by the classes' names."""
        with self.lock:
            return self._digest(classes)

    def _digest(self, classes):
        cdef Table* table = &self.table
        cdef uint64_t row, c, C = table.n_classes, size
        cdef double n
        cdef Hash128 h
        cdef uint64_t low = 0, high = 0
        cdef Statement statement = Statement(
            [name("count", view) for view in self.views], [name(class_name) for class_name in classes]
        )
        digest = Digest()
        for row in range(table.rows):
            size = statement.begin(table, row)
            for c in range(C):
                n = table.counts[row * C + c]
                if n != 0:
                    h = murmur(statement.buffer, statement.end(size, c, n))
                    low += h.low
                    high += h.high + (low < h.low)
        digest.add_sum((int(high) << 64) + int(low))
        for i, view in enumerate(self.views):
            for c in range(C):
                if table.totals[i * C + c] != 0:
                    digest.add(name("total", view, classes[c]), table.totals[i * C + c])
        return digest

    def freeze(self):
        """The store as arrays that no later learning changes."""
        with self.lock:
            return self._freeze()

    def _freeze(self):
        cdef Table* table = &self.table
        cdef uint64_t c = table.n_classes if table.n_views else 0
        return {
            "token_bytes": np.frombuffer(table.arena[: table.starts[table.rows]], np.uint8),
            "token_ends": _array(<uint8_t*>(table.starts + 1), table.rows * 8, np.uint64),
            "token_views": _array(table.views, table.rows, np.uint8).astype(np.uint16),
            "counts": _array(<uint8_t*>table.counts, table.rows * c * 8, np.float64).reshape(table.rows, c),
            "totals": _array(<uint8_t*>table.totals, table.n_views * c * 8, np.float64).reshape(
                table.n_views, c
            ),
        }

    def restore(self, sections, n_classes):
        """Take the place of what `freeze` gave, checked."""
        with self.lock:
            return self._restore(sections, n_classes)

    def _restore(self, sections, n_classes):
        n_classes = n_classes if self.views else 0  # as `freeze` has it
        frozen = checked(sections, len(self.views), n_classes)
        cdef Table fresh
        if open_table(&fresh, len(self.views), self.table.seed) != 0:
            raise MemoryError("no memory for a count store")
        try:
            self._fill(&fresh, frozen, n_classes)
        except BaseException:
            close_table(&fresh)
            raise
        close_table(&self.table)
        self.table = fresh
        self.moves += 1

    cdef _fill(self, Table* table, frozen, uint64_t n_classes):
        cdef uint64_t blob_size = len(frozen.blob)
        cdef const uint8_t[::1] blob = np.concatenate([frozen.blob, np.zeros(SLACK, np.uint8)])
        cdef const uint64_t[::1] ends = np.ascontiguousarray(frozen.ends)
        cdef const uint8_t[::1] views = np.ascontiguousarray(frozen.views.astype(np.uint8))
        cdef const double[:, ::1] counts = np.ascontiguousarray(frozen.counts)
        cdef const double[:, ::1] totals = np.ascontiguousarray(frozen.totals)
        cdef uint64_t rows = ends.shape[0]
        cdef uint64_t row, start, size, h
        while table.n_classes < n_classes:
            if widen(table) != 0:
                raise MemoryError("no memory for the classes of a snapshot")
        if reserve(table, rows, blob_size) != 0:
            raise MemoryError("no memory for the tokens of a snapshot")
        start = 0
        for row in range(rows):
            size = ends[row] - start
            h = hash_bytes(&blob[0] + start, size, table.seed + views[row])
            if find(table, &blob[0] + start, size, views[row], h) >= 0:
                raise twice()
            insert(table, &blob[0] + start, size, views[row], h)
            memcpy(table.counts + row * n_classes, &counts[row, 0], n_classes * sizeof(double))
            start = ends[row]
        if n_classes:
            memcpy(table.totals, &totals[0, 0], table.n_views * n_classes * sizeof(double))

    cdef keep(self, kept):
        """Leave out the rows that are not kept; those that are move together."""
        cdef const uint8_t[::1] mask = np.ascontiguousarray(kept, np.uint8)
        cdef Table* table = &self.table
        cdef uint64_t row, start, size, at = 0, last = 0, C = table.n_classes
        for row in range(table.rows):
            start = table.starts[row]
            size = table.starts[row + 1] - start
            if not mask[row]:
                table.known[table.views[row]] -= 1
                continue
            memmove(table.arena + at, table.arena + start, size)
            memmove(table.counts + last * C, table.counts + row * C, C * sizeof(double))
            table.views[last] = table.views[row]
            table.starts[last] = at
            at += size
            last += 1
        table.starts[last] = at
        table.rows = last
        self.moves += 1
        rebuild(table)


cdef class Statement:
    """A statement about a token, as `streamnb.digest` words it, put together without an object a token.

    Parameters
    ----------
    heads : list of bytes
        What stands before the token, by view.
    tails : list of bytes
        What stands after it, by class.
    """

    cdef uint8_t* buffer
    cdef uint64_t capacity
    cdef list heads, tails

    def __cinit__(self, list heads, list tails):
        self.heads, self.tails = heads, tails

    def __dealloc__(self):
        free(self.buffer)

    cdef uint64_t begin(self, const Table* table, uint64_t row) except 0:
        """The head, the token's length and the token; returns how many bytes they are."""
        cdef bytes head = self.heads[table.views[row]]
        cdef uint64_t n = len(head)
        cdef uint32_t size = <uint32_t>(table.starts[row + 1] - table.starts[row])
        cdef uint64_t longest = 0
        for tail in self.tails:
            longest = max(longest, len(tail))
        if grow(<void**>&self.buffer, &self.capacity, n + 4 + size + longest + 8, 1) != 0:
            raise MemoryError("no memory for a digest")
        memcpy(self.buffer, <const uint8_t*>head, n)
        memcpy(self.buffer + n, &size, 4)
        memcpy(self.buffer + n + 4, table.arena + table.starts[row], size)
        return n + 4 + size

    cdef uint64_t end(self, uint64_t at, uint64_t c, double count):
        """The class and the count after it; returns how many bytes the statement is."""
        cdef bytes tail = self.tails[c]
        cdef uint64_t n = len(tail)
        memcpy(self.buffer + at, <const uint8_t*>tail, n)
        memcpy(self.buffer + at + n, &count, 8)
        return at + n + 8


cdef _array(const uint8_t* data, uint64_t size, dtype):
    """A copy of memory as a numpy array."""
    return np.frombuffer(data[:size], dtype)


def _thawed(views, max_tokens, sections, n_classes, evicted):
    """A copy of a store, from what `CountStore.freeze` gave."""
    store = CountStore(views, max_tokens)
    store.restore(sections, n_classes)
    store.evicted_tokens, store.evicted_mass = evicted
    return store
