# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
# Twin of: nothing; the memory that the twins of statistics per class have in common
"""Columns of numbers with one number per class, and room for classes to come.

The caller holds the lock of the model.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset


cdef class PerClass:
    """Columns of one number per class."""

    def __dealloc__(self):
        free(self.columns)

    cdef int reserve(self, uint64_t n_classes) except -1:
        """Make room for `n_classes` classes."""
        cdef double* columns
        cdef uint64_t i
        if n_classes <= self.capacity and self.columns != NULL:
            return 0
        columns = <double*>calloc(self.n_columns * n_classes + 1, sizeof(double))
        if columns == NULL:
            raise MemoryError("no memory for the classes of a field")
        for i in range(self.n_columns if self.capacity else 0):
            memcpy(columns + i * n_classes, self.columns + i * self.capacity, self.capacity * sizeof(double))
        free(self.columns)
        self.columns, self.capacity = columns, n_classes
        self._point()
        return 0

    cdef _point(self):
        """Point the subclass's struct at the columns, which have moved."""

    def add_class(self):
        """Append a class; a batch that brought the class may have taught it already."""
        self.reserve(self.n_classes + 1)
        self.n_classes += 1

    cdef list _column(self, uint64_t column):
        cdef uint64_t c
        return [self.columns[column * self.capacity + c] for c in range(self.n_classes)]

    cdef _fill(self, columns):
        """Replace all columns; each row of the argument is one column."""
        cdef uint64_t i, c
        for i, column in enumerate(columns):
            self.n_classes = len(column)
            self.reserve(self.n_classes)
            for c, value in enumerate(column):
                self.columns[i * self.capacity + c] = value

    cdef clear(self):
        """Forget all that was learned."""
        memset(self.columns, 0, self.n_columns * self.capacity * sizeof(double))

    cdef bint is_taught(self):
        """Return whether any class has learned, those to come included."""
        cdef uint64_t c
        for c in range(self.capacity):
            if self.columns[c] > 0:
                return True
        return False

    cdef uint64_t _class(self, index) except? 0:
        if not 0 <= index < self.n_classes:
            raise IndexError(f"there is no class {index} of {self.n_classes}")
        return index
