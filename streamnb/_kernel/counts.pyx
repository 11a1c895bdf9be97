# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
"""The compiled twin of `streamnb.counts`: the same store, in one hash table."""

import os

import numpy as np

from streamnb.counts import CountStore as PlainCountStore
from streamnb.counts import checked, twice

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from streamnb._kernel.tokens cimport SLACK
from streamnb._kernel.table cimport Table, close_table, find, hash_bytes, insert, open_table, reserve, widen


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
        return self._find(token) >= 0

    def get(self, str token, default=None):
        """The counts of a token, or `default`."""
        cdef int64_t row = self._find(token)
        return default if row < 0 else self._row(row)

    def __getitem__(self, str token):
        cdef int64_t row = self._find(token)
        if row < 0:
            raise KeyError(token)
        return self._row(row)

    def __iter__(self):
        for token, _ in self.items():
            yield token

    def items(self):
        """Tokens and counts, oldest first."""
        cdef uint64_t row
        cdef Table* table
        for row in range(self.store.table.rows):
            table = &self.store.table
            if table.views[row] == self.view:
                token = table.arena[table.starts[row] : table.starts[row + 1]]
                yield token.decode(), self._row(row)

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
        return [table.totals[self.view * table.n_classes + c] for c in range(table.n_classes)]

    def add(self, features, class_index, weight=1.0):
        """Count a message's features for one class."""
        cdef Table* table = &self.store.table
        cdef uint64_t c = class_index
        cdef double n
        cdef double total = 0.0
        cdef int64_t row
        cdef uint64_t h, size
        cdef bytes data
        cdef const uint8_t* start
        for token, f in features.items():
            n = f * weight
            if n == 0:
                continue
            data = token.encode() + _SLACK
            start = data
            size = len(data) - SLACK
            h = hash_bytes(start, size, table.seed + self.view)
            row = find(table, start, size, self.view, h)
            if row < 0:
                if reserve(table, 1, size) != 0:
                    raise MemoryError("no memory for another token")
                row = insert(table, start, size, self.view, h)
            table.counts[row * table.n_classes + c] += n
            total += n
        table.totals[self.view * table.n_classes + c] += total

    def remove(self, features, class_index, weight=1.0):
        """Take a message's features back; rows that count nothing leave the table."""
        cdef Table* table = &self.store.table
        cdef uint64_t c = class_index
        cdef uint64_t other
        cdef double total = 0.0
        cdef bint emptied = False
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
            total += n
            if not any(self.rows._row(row)):
                emptied = True
        table.totals[self.view * table.n_classes + c] = max(
            0.0, table.totals[self.view * table.n_classes + c] - total
        )
        if emptied:
            self.store.compact()

    def merge(self, other, classes):
        """Add another view's counts; see `streamnb.counts.ViewCounts.merge`."""
        cdef Table* table = &self.store.table
        cdef uint64_t at = self.view * table.n_classes
        for token, counts in other.rows.items():
            for j, n in enumerate(counts):
                if n:
                    self.add({token: n}, classes[j])
                    table.totals[at + <uint64_t>classes[j]] -= n
        for j, n in enumerate(other.totals):
            table.totals[at + <uint64_t>classes[j]] += n


cdef class CountStore:
    """The counts of all count views; see `streamnb.counts.CountStore`."""

    def __cinit__(self, views):
        seed = int.from_bytes(os.urandom(8), "little")
        if open_table(&self.table, len(views), seed) != 0:
            raise MemoryError("no memory for a count store")
        self.views = {view: ViewCounts(self, i) for i, view in enumerate(views)}

    def __dealloc__(self):
        close_table(&self.table)

    def __reduce__(self):
        return _thawed, (list(self.views), self.freeze(), self.table.n_classes)

    def __getitem__(self, view):
        return self.views[view]

    def __iter__(self):
        return iter(self.views)

    def add_class(self):
        """Append a class to every view."""
        if widen(&self.table) != 0:
            raise MemoryError("no memory for another class")

    def merge(self, other, classes):
        """Add another store of the same views."""
        PlainCountStore.merge(self, other, classes)

    def digest(self, classes):
        """The digest of all rows and totals, by the classes' names."""
        return PlainCountStore.digest(self, classes)

    def freeze(self):
        """The store as arrays that no later learning changes."""
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

    cdef compact(self):
        """Leave out the rows that count nothing."""
        sections = self.freeze()
        kept = sections["counts"].any(axis=1)
        ends = sections["token_ends"].astype(np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[: len(ends) - 1]])
        blob = sections["token_bytes"].tobytes()
        tokens = [blob[a:b] for a, b, keep in zip(starts, ends, kept) if keep]
        sections["token_bytes"] = np.frombuffer(b"".join(tokens), np.uint8)
        sections["token_ends"] = np.cumsum([len(token) for token in tokens], dtype=np.uint64)
        sections["token_views"] = sections["token_views"][kept]
        sections["counts"] = sections["counts"][kept]
        self.restore(sections, self.table.n_classes)


cdef _array(const uint8_t* data, uint64_t size, dtype):
    """A copy of memory as a numpy array."""
    return np.frombuffer(data[:size], dtype)


def _thawed(views, sections, n_classes):
    """A copy of a store, from what `CountStore.freeze` gave."""
    store = CountStore(views)
    store.restore(sections, n_classes)
    return store
