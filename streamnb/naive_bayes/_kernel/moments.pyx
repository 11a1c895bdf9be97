# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
# Twin of: streamnb.naive_bayes.statistics.moments
"""The compiled moments: `add` is done in C, and everything else by the plain twin on a copy.

Only `add` runs for each message; leaving the rest to the plain twin keeps one arithmetic to get right.
The caller holds the lock of the model.
"""

from streamnb.naive_bayes.statistics.moments import Moments as PlainMoments

cimport cython


@cython.final
cdef class Moments(PerClass):
    """Moments of one number, per class; see the plain twin."""

    def __cinit__(self, n_classes=0):
        self.n_columns, self.n_classes = 3, n_classes
        self.reserve(n_classes)

    cdef _point(self):
        self.sums = MomentSums(self.columns, self.columns + self.capacity, self.columns + 2 * self.capacity)

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
        """Add a finite number."""
        add_number(&self.sums, x, self._class(class_index), weight)

    def remove(self, x, class_index, weight=1.0):
        """Undo `add`."""
        self._changed(PlainMoments.remove, x, class_index, weight)

    def fade(self, factor):
        """Multiply all weights."""
        self._changed(PlainMoments.fade, factor)

    def merge(self, other, classes):
        """Add another's numbers."""
        self._changed(PlainMoments.merge, _plain(other), classes)

    def subtract(self, other, classes):
        """Undo `merge`."""
        self._changed(PlainMoments.subtract, _plain(other), classes)

    def check_subtractable(self, other, classes):
        """Raise ``ValueError`` if another has more numbers than these moments."""
        _plain(self).check_subtractable(_plain(other), classes)

    def pooled(self):
        """Return the summed weights, and the variance of all classes' numbers about their common mean."""
        return _plain(self).pooled()

    def digest(self, view, classes):
        """Return the digest of all classes' moments."""
        return _plain(self).digest(view, classes)

    def freeze(self):
        """Return the moments as an array of shape (3, C): n, mean, squares."""
        return _plain(self).freeze()

    def restore(self, array):
        """Replace the moments with an array that `freeze` returned."""
        self._fill(array.tolist())

    def _changed(self, change, *arguments):
        """Apply a method of the plain twin to these moments."""
        plain = _plain(self)
        change(plain, *arguments)
        self._fill((plain.n, plain.mean, plain.squares))


def _plain(moments):
    """Return a plain copy of either twin."""
    copy = PlainMoments()
    copy.n, copy.mean, copy.squares = list(moments.n), list(moments.mean), list(moments.squares)
    return copy


def _moments_of(*columns):
    """Return a copy from the arguments that `__reduce__` gave."""
    made = Moments()
    (<Moments>made)._fill(columns)
    return made
