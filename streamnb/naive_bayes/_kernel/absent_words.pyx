# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=False
# Twin of: streamnb.naive_bayes.statistics.absent_words
"""The compiled histograms of the Bernoulli event model. The caller holds the lock of the store they belong to."""

import numpy as np

from streamnb.naive_bayes.statistics import absent_words as plain

cimport cython

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.absent_words cimport Entry, Histogram, all_absent, move, reserve, set_messages

cdef double ROUNDING = plain.WEIGHT_ROUNDING


@cython.final
cdef class AbsentWords:
    """Per class, the weight of the messages learned and how many words have each count; see the plain twin."""

    def __cinit__(self, n_classes=0):
        self.reserve(n_classes)
        self.n_classes = n_classes

    def __dealloc__(self):
        cdef uint64_t c
        for c in range(self.capacity):
            free(self.by_class[c].entries)
        free(self.by_class)

    def __reduce__(self):
        return _made, (self.messages, self.histograms)

    @property
    def messages(self):
        """Weight of the messages learned, per class."""
        cdef uint64_t c
        return [self.by_class[c].messages for c in range(self.n_classes)]

    @property
    def histograms(self):
        """Count to the number of words with that count, per class."""
        cdef uint64_t c, i
        return [
            {self.by_class[c].entries[i].count: self.by_class[c].entries[i].words for i in range(self.by_class[c].n)}
            for c in range(self.n_classes)
        ]

    cdef reserve(self, uint64_t n_classes):
        """Make room for `n_classes` classes, the new ones without messages."""
        cdef Histogram* by_class
        if n_classes <= self.capacity:
            return
        by_class = <Histogram*>calloc(n_classes, sizeof(Histogram))
        if by_class == NULL:
            raise MemoryError("no memory for the classes of absent words")
        if self.capacity:
            memcpy(by_class, self.by_class, self.capacity * sizeof(Histogram))
        free(self.by_class)
        self.by_class, self.capacity = by_class, n_classes

    def add_class(self):
        """Append a class; a batch that brought the class may have taught it already."""
        self.reserve(self.n_classes + 1)
        self.n_classes += 1

    def add(self, rows, words, class_index, weight=1.0):
        """Add a message's words. Must run before the rows themselves change."""
        cdef Histogram* histogram = self._of(class_index)
        cdef double before
        if reserve(histogram, len(words)) != 0:
            raise MemoryError("no memory for the counts of a message")
        for word, f in words.items():
            row = rows.get(word)
            before = 0.0 if row is None else row[class_index]
            move(histogram, before, before + f * weight)
        set_messages(histogram, histogram.messages + weight)

    def check_removable(self, rows, amounts, class_index, weight=1.0):
        """Raise ``ValueError`` if `remove` would leave a word in more messages than there are."""
        cdef Histogram* histogram = self._of(class_index)
        cdef double left = histogram.messages - weight + ROUNDING * histogram.messages, count
        cdef uint64_t i = histogram.n
        cdef int64_t over = 0
        while i and histogram.entries[i - 1].count > left:
            i -= 1
            over += histogram.entries[i].words
        for word, amount in amounts.items() if over else ():
            count = rows[word][class_index]
            over -= count > left >= count - amount
        if over:
            raise plain.never_learned()

    def remove(self, rows, amounts, class_index, weight=1.0):
        """Undo `add`: subtract the message's weight, and an amount from each word's count, before the rows change."""
        cdef Histogram* histogram = self._of(class_index)
        cdef double before
        if reserve(histogram, len(amounts)) != 0:
            raise MemoryError("no memory for the counts of a message")
        for word, amount in amounts.items():
            before = rows[word][class_index]
            move(histogram, before, before - amount)
        set_messages(histogram, max(0.0, histogram.messages - weight))

    def messages_of(self, class_index):
        """Return the weight of the messages learned for a class."""
        return self._of(class_index).messages

    def settle(self, class_index, double messages):
        """Set the weight of a class's messages, and return it: at least the largest count of a word."""
        cdef Histogram* histogram = self._of(class_index)
        if histogram.n:
            messages = max(messages, histogram.entries[histogram.n - 1].count)
        set_messages(histogram, messages)
        return messages

    def rebuild(self, rows, messages):
        """Count again from the rows, as after a snapshot was read or rare words were evicted."""
        self._fill([np.unique(column, return_counts=True) for column in rows.columns()], messages)

    def freeze(self, prefix):
        """Return no sections: the rows and the class counts determine everything."""
        return {}

    def restore(self, sections, n_classes, prefix):
        """Check that no word occurs in more messages of a class than the class has learned."""
        cdef uint64_t c
        cdef Histogram* histogram
        for c in range(self.n_classes):
            histogram = self.by_class + c
            if histogram.n and histogram.entries[histogram.n - 1].count > histogram.messages * (1 + ROUNDING):
                raise plain.impossible()

    def all_absent(self, c, vocabulary, b):
        """Return ``sum_j log(n_c - n_jc + b)`` and the number of words left out of it; see the plain twin."""
        cdef uint64_t certain = 0
        cdef double total = all_absent(self._of(c), vocabulary, b, &certain)
        return total, certain

    cdef Histogram* _of(self, class_index) except NULL:
        if not 0 <= class_index < self.n_classes:
            raise IndexError(f"there is no class {class_index} of {self.n_classes}")
        return self.by_class + <uint64_t>class_index

    cdef _fill(self, histograms, messages):
        """Replace all histograms: per class, counts in rising order and the number of words with each."""
        cdef uint64_t c, i, n = len(messages)
        self.reserve(n)
        for c, (counts, _) in enumerate(histograms):
            self.by_class[c].n = 0
            if reserve(self.by_class + c, len(counts)) != 0:
                raise MemoryError("no memory for the counts of a class")
        for c, (counts, words) in enumerate(histograms):
            for i, (count, n_words) in enumerate(zip(counts.tolist(), words.tolist())):
                self.by_class[c].entries[i] = Entry(count, n_words)
            self.by_class[c].n = len(counts)
        for c in range(n):
            set_messages(self.by_class + c, messages[c])
        self.n_classes = n


def _made(messages, histograms):
    """Return a copy from the arguments that `__reduce__` gave."""
    made = AbsentWords(len(messages))
    pairs = [(np.array(list(each), np.float64), np.array(list(each.values()), np.int64)) for each in histograms]
    (<AbsentWords>made)._fill(pairs, messages)
    return made
