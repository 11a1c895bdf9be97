# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
# Twin of: streamnb.naive_bayes.statistics.field_totals
"""The compiled sums over the values of one field. The caller holds the lock of the model."""

cimport cython

from libc.stdint cimport uint64_t


@cython.final
cdef class FieldTotal(PerClass):
    """Sums over the values of one field; see the plain twin."""

    def __cinit__(self, n_classes=0):
        self.n_columns, self.n_classes = 1, n_classes
        self.reserve(n_classes)

    cdef _point(self):
        self.sums.totals = self.columns

    cdef clear(self):
        PerClass.clear(self)
        self.sums.states = 0

    def __reduce__(self):
        return _total_of, (self.totals, self.states)

    @property
    def totals(self):
        """Weight of the messages that had the field, per class."""
        return self._column(0)

    @property
    def states(self):
        """The number of different values seen."""
        return self.sums.states

    @states.setter
    def states(self, states):
        self.sums.states = states

    def add(self, class_index, n):
        """Count a value for a class."""
        self.columns[self._class(class_index)] += n

    def remove(self, class_index, n):
        """Undo `add`."""
        cdef double left = self.columns[self._class(class_index)] - n
        self.columns[<uint64_t>class_index] = left if left > 0.0 else 0.0


def _total_of(totals, states):
    """Return a copy from the arguments that `__reduce__` gave."""
    made = FieldTotal()
    (<FieldTotal>made)._fill((totals,))
    made.states = states
    return made
