# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
"""The compiled twins of `streamnb.naive_bayes.statistics.moments.Moments` and `streamnb.naive_bayes.statistics.field_totals.FieldTotal`.

What a batch adds, it adds in C. What is seldom asked for is the plain twin's work, on a copy: there is one
arithmetic to get right. Whoever calls holds the lock of the model.
"""

from streamnb.naive_bayes.statistics.field_totals import FieldTotal as PlainTotal
from streamnb.naive_bayes.statistics.moments import Moments as PlainMoments

cimport cython

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from streamnb.naive_bayes._kernel.gaussian cimport add_number


cdef class PerClass:
    """Columns of one number a class."""

    def __dealloc__(self):
        free(self.columns)

    cdef int reserve(self, uint64_t n_classes) except -1:
        """Room for so many classes."""
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
        """Let C know where the columns are."""

    def add_class(self):
        """Append a class, which may have learned already where a batch brought it."""
        self.reserve(self.n_classes + 1)
        self.n_classes += 1

    cdef list _column(self, uint64_t column):
        cdef uint64_t c
        return [self.columns[column * self.capacity + c] for c in range(self.n_classes)]

    cdef _fill(self, columns):
        """Take the place of what there is: a row a column."""
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
        """Whether anything was learned, of the classes there are and of those to come."""
        cdef uint64_t c
        for c in range(self.capacity):
            if self.columns[c] > 0:
                return True
        return False

    cdef uint64_t _class(self, index) except? 0:
        if not 0 <= index < self.n_classes:
            raise IndexError(f"there is no class {index} of {self.n_classes}")
        return index


@cython.final
cdef class Moments(PerClass):
    """Moments of one number, per class; see the plain twin."""

    def __cinit__(self, n_classes=0):
        self.n_columns, self.n_classes = 3, n_classes
        self.reserve(n_classes)

    cdef _point(self):
        self.at = Spread(self.columns, self.columns + self.capacity, self.columns + 2 * self.capacity)

    def __reduce__(self):
        return _moments_of, (self.n, self.mean, self.squares)

    @property
    def n(self):
        """Summed weights, per class."""
        return self._column(0)

    @property
    def mean(self):
        """Mean, per class."""
        return self._column(1)

    @property
    def squares(self):
        """Centred sum of squares, per class."""
        return self._column(2)

    def add(self, x, class_index, weight=1.0):
        """Learn a finite number."""
        add_number(&self.at, x, self._class(class_index), weight)

    def remove(self, x, class_index, weight=1.0):
        """Take a number back."""
        self._changed(PlainMoments.remove, x, class_index, weight)

    def merge(self, other, classes):
        """Add another's numbers."""
        self._changed(PlainMoments.merge, _plain(other), classes)

    def subtract(self, other, classes):
        """Take another's numbers away."""
        self._changed(PlainMoments.subtract, _plain(other), classes)

    def check_subtractable(self, other, classes):
        """Raise ``ValueError`` if another has more numbers than there are."""
        _plain(self).check_subtractable(_plain(other), classes)

    def pooled(self):
        """Summed weights and variance of all classes' numbers about their common mean."""
        return _plain(self).pooled()

    def digest(self, view, classes):
        """The digest of all classes' moments."""
        return _plain(self).digest(view, classes)

    def freeze(self):
        """The moments as an array of shape (3, C): n, mean, squares."""
        return _plain(self).freeze()

    def restore(self, array):
        """Take the place of what `freeze` gave."""
        self._fill(array.tolist())

    def _changed(self, change, *arguments):
        """Do to these moments what the plain twin does."""
        plain = _plain(self)
        change(plain, *arguments)
        self._fill((plain.n, plain.mean, plain.squares))


@cython.final
cdef class FieldTotal(PerClass):
    """Sums over the values of one field; see the plain twin."""

    def __cinit__(self, n_classes=0):
        self.n_columns, self.n_classes = 1, n_classes
        self.reserve(n_classes)

    cdef _point(self):
        self.at.totals = self.columns

    cdef clear(self):
        PerClass.clear(self)
        self.at.states = 0

    def __reduce__(self):
        return _total_of, (self.totals, self.states)

    @property
    def totals(self):
        """Weight of the messages that had the field, per class."""
        return self._column(0)

    @property
    def states(self):
        """How many values were seen."""
        return self.at.states

    @states.setter
    def states(self, states):
        self.at.states = states

    def add(self, class_index, n):
        """Count a value for a class."""
        self.columns[self._class(class_index)] += n

    def remove(self, class_index, n):
        """Take a value back."""
        cdef double left = self.columns[self._class(class_index)] - n
        self.columns[<uint64_t>class_index] = left if left > 0.0 else 0.0


def _plain(moments):
    """A plain copy of either twin."""
    copy = PlainMoments()
    copy.n, copy.mean, copy.squares = list(moments.n), list(moments.mean), list(moments.squares)
    return copy


def _moments_of(*columns):
    """A copy, from what `__reduce__` gave."""
    made = Moments()
    (<Moments>made)._fill(columns)
    return made


def _total_of(totals, states):
    """A copy, from what `__reduce__` gave."""
    made = FieldTotal()
    (<FieldTotal>made)._fill((totals,))
    made.states = states
    return made
