# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# Twin of: streamnb.naive_bayes.model.message_features
"""Read the fields of a batch into C and check them, up to the tokens; `step.pyx` splits the texts without the GIL.

All values are read before any state takes part: a value may run code of its own, and that code may use the model.
"""

cimport cython

from streamnb.base import NUMBER_MAX
from streamnb.naive_bayes.features.values import EXACT_BELOW, TERM_COUNT_MAX, term_counts, text_of

from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport fabs, log
from libc.stdlib cimport free
from libc.string cimport memset

from streamnb.naive_bayes._kernel.readers cimport give
from streamnb.naive_bayes._kernel.tokenizer cimport (
    PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_IS_ASCII, PyUnicode_KIND, grow, point_at
)
from streamnb.naive_bayes._kernel.values cimport BlockReader

cdef double EXACT = EXACT_BELOW


@cython.final
cdef class BatchReader:
    """Reads the fields that one model's views name; the driver fills in the lists of fields."""

    def __cinit__(self):
        self.groups, self.given_fields, self.blocks = [], [], []

    def __dealloc__(self):
        _free(&self.idle)

    cdef take(self, Inbox* inbox):
        """Hand the memory to a batch.

        Until `keep`, a second batch, which a value's own code may run, gets memory of its own.
        """
        inbox[0] = self.idle
        memset(&self.idle, 0, sizeof(Inbox))

    cdef keep(self, Inbox* inbox):
        """Take a batch's memory back for the next batch."""
        _free(&self.idle)
        self.idle = inbox[0]

    cdef list read(self, fields, uint64_t n, Inbox* inbox, list alive):
        """Read n messages; return the names of the blocks' values, in order.

        `alive` receives the texts that C points into.

        Raises
        ------
        ValueError
            A field holds a value that its view cannot read.
        MemoryError
            There is no memory for a batch.
        """
        cdef uint64_t n_texts = n * <uint64_t>len(self.groups)
        cdef uint64_t n_given = n * <uint64_t>(len(self.given_fields) + len(self.blocks))
        if (
            grow(<void**>&inbox.texts, &inbox.texts_capacity, n_texts + 1, sizeof(Text)) != 0
            or grow(<void**>&inbox.lengths, &inbox.lengths_capacity, n + 1, sizeof(double)) != 0
            or grow(<void**>&inbox.given_ends, &inbox.given_ends_capacity, n_given + 1, sizeof(uint64_t)) != 0
        ):
            raise MemoryError("no memory for a batch")
        self._read_texts(fields, n, inbox, alive)
        return self._read_given(fields, n, inbox)

    cdef _read_texts(self, fields, uint64_t n, Inbox* inbox, list alive):
        cdef uint64_t i, group, n_groups = len(self.groups)
        cdef bint single = n_groups == 1 and len(self.groups[0]) == 1
        column = fields.get(self.groups[0][0]) if single else None
        single = isinstance(column, list) and <uint64_t>len(column) >= n
        if n_groups == 0:
            memset(inbox.lengths, 0, n * sizeof(double))
            return
        for i in range(n):
            if single and type((<list>column)[i]) is str and PyUnicode_KIND((<list>column)[i]) == 1:  # no surrogates
                alive.append(point_at(inbox.texts + i, (<list>column)[i]))
                inbox.lengths[i] = log(1.0 + <double>inbox.texts[i].size)
                continue
            characters = {}
            for group in range(n_groups):
                joined = text_of(self.groups[group], fields, i, characters)
                alive.append(point_at(inbox.texts + i * n_groups + group, joined))
            inbox.lengths[i] = log(1.0 + <double>sum(characters.values()))

    cdef list _read_given(self, fields, uint64_t n, Inbox* inbox):
        """Read terms as tokens with counts, end to end, and the blocks' values after them."""
        cdef uint64_t i, at = 0
        cdef Given* given = &inbox.given
        cdef bytes text
        cdef list names = []
        given.n = given.size = 0
        for i in range(n if self.given_fields or self.blocks else 0):
            for field, above in self.given_fields:
                value = _value(fields, field, i)
                if type(value) is not dict or not _take_terms(given, <dict>value, above):
                    for token, count in term_counts(value, field, above).items():
                        text = (<str>token).encode()
                        if give(given, <const char*>text, len(text), count) != 0:
                            raise MemoryError("no memory for a batch")
                inbox.given_ends[at] = given.n
                at += 1
            for block in self.blocks:
                (<BlockReader>block).read(fields, i, given, names)
                inbox.given_ends[at] = given.n
                at += 1
        return names

    cdef find_statistics(self, model, uint64_t n, uint64_t width, const int64_t* y, Inbox* inbox, list names):
        """Find the statistics of each name in a block; a name that is to be learned gets new ones."""
        cdef uint64_t i, j, group, at = 0, n_given = len(self.given_fields) + len(self.blocks)
        cdef Given* given = &inbox.given
        cdef BlockReader block
        if not self.blocks:
            return
        if grow(<void**>&given.of, &given.of_capacity, given.n + 1, sizeof(void*)) != 0:
            raise MemoryError("no memory for a batch")
        for block in self.blocks:
            block.begin(model)
        for i in range(n):
            for block in self.blocks:
                group = i * n_given + block.group
                for j in range(inbox.given_ends[group - 1] if group else 0, inbox.given_ends[group]):
                    given.of[j] = block.find(names[at], y[i] >= 0, width)
                    at += 1


cdef bint _take_terms(Given* given, dict terms, above) except -1:
    """Read ASCII names with plain numbers as `term_counts` does; False for any others, with nothing taken."""
    cdef uint64_t n = given.n, size = given.size
    cdef bint is_flag = above is not None
    cdef double least = above if is_flag else 0.0, most = NUMBER_MAX if is_flag else TERM_COUNT_MAX, x
    cdef int overflow = 0
    for name, count in terms.items():
        if type(name) is not str or not PyUnicode_IS_ASCII(name):
            break
        if type(count) is float:
            x = <double>count
        elif type(count) is int or type(count) is bool:
            x = <double>PyLong_AsLongLongAndOverflow(count, &overflow)
            if overflow or fabs(x) >= EXACT:
                break
        else:
            break
        if not (-most if is_flag else 0.0) <= x <= most:
            break
        if is_flag:
            x = 1.0 if x > least else 0.0
        if x != 0 and give(given, PyUnicode_DATA(name), PyUnicode_GET_LENGTH(name), x) != 0:
            raise MemoryError("no memory for a batch")
    else:
        return True
    given.n, given.size = n, size
    return False


cdef void _free(Inbox* inbox) noexcept:
    free(inbox.texts)
    free(inbox.given.bytes)
    free(inbox.given.ends)
    free(inbox.given.counts)
    free(inbox.given.of)
    free(inbox.given_ends)
    free(inbox.lengths)


cdef _value(fields, str field, uint64_t i):
    column = fields.get(field)
    return None if column is None else column[i]
