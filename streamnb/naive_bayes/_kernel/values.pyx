# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# Twin of: streamnb.naive_bayes.features.values
"""Read blocks of named values into C.

Str names with values of Python's plain types are read here; all others go through the plain reader. The
statistics of the names are looked up after all values were read, because a value may run code of its own.
"""

from streamnb.base import NUMBER_MAX
from streamnb.naive_bayes.features.field_tokens import field_of
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.readers import Categories, Flags, Numbers
from streamnb.naive_bayes.features.values import CATEGORY_BYTES_MAX as _CATEGORY_BYTES_MAX, EXACT_BELOW
from streamnb.naive_bayes.statistics.decay import FORGOTTEN as _FORGOTTEN

from cpython.dict cimport PyDict_GetItem
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.readers cimport BLOCK_CATEGORIES, BLOCK_FLAGS, BLOCK_NUMBERS, Given, give
from streamnb.naive_bayes._kernel.field_totals cimport FieldTotal
from streamnb.naive_bayes._kernel.moments cimport Moments, fade_numbers
from streamnb.naive_bayes._kernel.per_class cimport PerClass
from streamnb.naive_bayes._kernel.cells cimport close_row, open_row
from streamnb.naive_bayes._kernel.table cimport Table, start_of, view_of
from streamnb.naive_bayes._kernel.tokenizer cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_IS_ASCII

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL

_KINDS = {Categories: BLOCK_CATEGORIES, Flags: BLOCK_FLAGS, Numbers: BLOCK_NUMBERS}

cdef double EXACT = EXACT_BELOW
cdef Py_ssize_t CATEGORY_BYTES_MAX = _CATEGORY_BYTES_MAX
cdef double LARGEST = NUMBER_MAX
cdef double FORGOTTEN = _FORGOTTEN


cdef class BlockReader:
    """Reads the block of one view.

    Parameters
    ----------
    view : View
    views : sequence of View
        All views: a block that reads every field leaves out fields that another view names.
    group, store : int
        The index of the block's given tokens, and of the view of the store that counts them.
    """

    def __cinit__(self, view, views, group, store):
        self.view, self.reader, self.views, self.group, self.store = view, view.reader, views, group, store
        self.kind = _KINDS[type(view.reader)]
        self.field, self.fields = view.reader.field, view.reader.fields
        self.taken = frozenset(name for other in views for name in other.reader.named_fields)
        self.known, self.fresh = {}, {}

    cdef read(self, columns, uint64_t i, Given* given, list names):
        """Read message i's values as given tokens, numbers as counts of empty ones; append each name to `names`."""
        cdef uint64_t n = given.n, size = given.size
        cdef Py_ssize_t n_names = len(names)
        if not self._read_common(columns, i, given, names):
            given.n, given.size = n, size
            del names[n_names:]
            self._read_any(columns, i, given, names)

    cdef bint _read_common(self, columns, uint64_t i, Given* given, list names) except -1:
        """Read names and values of the common types; False at the first of any other type."""
        if self.field:
            column = columns.get(self.field)
            values = None if column is None else column[i]
            if type(values) is not dict:
                return values is None
            for name, value in (<dict>values).items():
                if not self._take(name, value, given, names):
                    return False
            return True
        if self.fields:
            for name in self.fields:
                column = columns.get(name)
                if column is not None and not self._take(name, column[i], given, names):
                    return False
            return True
        if type(columns) is not dict:
            return False
        for name, column in (<dict>columns).items():
            if name in self.taken:
                continue
            value = column[i]
            kind = type(value)
            if value is None:
                continue
            if kind is float or kind is int:
                if self.kind != BLOCK_NUMBERS:
                    continue
            elif kind is str:
                if self.kind != BLOCK_CATEGORIES:
                    continue
            elif kind is not bool:
                return False
            elif self.kind != BLOCK_FLAGS:
                continue
            if not self._take(name, value, given, names):
                return False
        return True

    cdef bint _take(self, name, value, Given* given, list names) except -1:
        """Read one value, or leave it out if it is missing; False if it or its name is of an uncommon type."""
        cdef double x
        cdef int overflow = 0
        cdef int64_t whole
        cdef char[32] digits
        cdef Py_ssize_t size
        if type(name) is not str or _utf8(name, &size) == NULL:
            return False
        if value is None:
            return True
        if self.kind == BLOCK_NUMBERS:
            if type(value) is float:
                x = <double>value
            elif type(value) is int or type(value) is bool:
                x = <double>PyLong_AsLongLongAndOverflow(value, &overflow)
                if overflow:
                    return False
            else:
                return False
            if x != x:
                return True
            if not fabs(x) <= LARGEST:
                return False
            names.append(name)
            _give(given, NULL, 0, x)
            return True
        if self.kind == BLOCK_FLAGS and type(value) is int:
            value = value != 0
        if type(value) is bool:
            return _give_token(given, names, name, b"true" if value else b"false", 4 if value else 5, False)
        if self.kind == BLOCK_FLAGS:
            return False
        if type(value) is str:
            return _give_text(given, names, name, value)
        if type(value) is int:
            whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        elif type(value) is float:
            x = <double>value
            if x != x:
                return True
            if not fabs(x) < EXACT or x != <double><int64_t>x:
                return False
            whole = <int64_t>x
        else:
            return False
        return not overflow and _give_token(
            given, names, name, digits, snprintf(digits, 32, "%lld", <long long>whole), False
        )

    cdef _read_any(self, columns, uint64_t i, Given* given, list names):
        """Read message i's values with the plain reader, whatever their types."""
        cdef bytes data
        for key, x in self.reader.features(Message(columns, i, None, self.taken)).items():
            data = b"" if self.kind == BLOCK_NUMBERS else (<str>key).encode()
            _give(given, <const char*>data, len(data), x)
            names.append(key if self.kind == BLOCK_NUMBERS else field_of(key))

    cdef void* find(self, str name, bint learned, uint64_t n_classes) except? NULL:
        """Return the statistics of a name with room for `n_classes` classes; make them if it is learned, else NULL."""
        cdef PyObject* found = PyDict_GetItem(self.known, name)
        if found == NULL:
            found = PyDict_GetItem(self.fresh, name)
        if found == NULL:
            if not learned:
                return NULL
            made = (Moments if self.kind == BLOCK_NUMBERS else FieldTotal)(self.n_classes)
            self.fresh[name] = made
            found = <PyObject*>made
        if self.kind == BLOCK_NUMBERS:
            (<Moments><object>found).reserve(n_classes)
            return &(<Moments><object>found).sums
        (<FieldTotal><object>found).reserve(n_classes)
        return &(<FieldTotal><object>found).sums

    cdef begin(self, model):
        """Look names up in this model's statistics from now on."""
        name = self.view.name
        statistic = model.statistics[name]
        self.known = statistic.numbers if self.kind == BLOCK_NUMBERS else statistic.tally.fields
        self.fresh, self.n_classes = {}, len(model.classes)

    cdef adopt(self):
        """Add the names that the batch brought to the model's, except those it stopped short of."""
        for name, statistic in self.fresh.items():
            if (<PerClass>statistic).is_taught():
                self.known[name] = statistic
        self.fresh = {}

    cdef fade(self, const Table* table, double factor):
        """The twin of the statistics' `fade`; no name's sums move, because the batch points at them."""
        if self.kind != BLOCK_NUMBERS:
            self.recount(table)
            return
        for name, statistic in {**self.known, **self.fresh}.items():
            fade_numbers(&(<Moments>statistic).sums, (<PerClass>statistic).capacity, factor, FORGOTTEN)
            if not (<PerClass>statistic).is_taught():
                self.known.pop(name, None)
                self.fresh[name] = statistic

    cdef recount(self, const Table* table):
        """The twin of `FieldTotals.rebuild`; no field's sums move, because the batch points at them."""
        cdef FieldTotal field
        cdef const double* counts
        cdef uint64_t row, c
        fields = {**self.known, **self.fresh}
        for each in fields.values():
            (<FieldTotal>each).clear()
        for row in range(table.rows):
            if view_of(table, row) != self.store:
                continue
            field = fields[field_of(table.arena[start_of(table, row) : start_of(table, row + 1)].decode())]
            field.sums.states += 1
            counts = open_row(table, row)
            for c in range(table.n_classes):
                field.sums.totals[c] += counts[c]
            close_row(table, row)
        self.known.clear()
        self.fresh = {}
        for name, each in fields.items():
            (self.known if (<FieldTotal>each).sums.states else self.fresh)[name] = each


cdef const char* _utf8(text, Py_ssize_t* size) except? NULL:
    """Return a str's bytes, which live as long as it does; NULL if it holds half of a surrogate pair."""
    if PyUnicode_IS_ASCII(text):
        size[0] = PyUnicode_GET_LENGTH(text)
        return <const char*>PyUnicode_DATA(text)
    try:
        return PyUnicode_AsUTF8AndSize(text, size)
    except UnicodeEncodeError:
        return NULL


cdef bint _give_text(Given* given, list names, name, value) except -1:
    """Append a category, if JSON writes its text unchanged and it is not too long."""
    cdef Py_ssize_t size, i
    cdef const char* text = _utf8(value, &size)
    if text == NULL:
        return False
    if size > CATEGORY_BYTES_MAX:
        return False
    for i in range(size):
        if <uint8_t>text[i] < 0x20 or text[i] == c'"' or text[i] == c"\\":
            return False
    return _give_token(given, names, name, text, size, True)


cdef bint _give_token(Given* given, list names, name, const char* value, Py_ssize_t size, bint quoted) except -1:
    """Append the token of a name and a value; see `streamnb.naive_bayes.features.readers.token_of`."""
    cdef Py_ssize_t first
    cdef const char* text = _utf8(name, &first)
    cdef uint8_t* at
    _give(given, NULL, first + 1 + size + 2 * quoted, 1.0)
    at = given.bytes + given.size - (first + 1 + size + 2 * quoted)
    memcpy(at, text, first)
    at[first] = c"="
    at += first + 1
    if quoted:
        at[0] = at[size + 1] = c'"'
        at += 1
    memcpy(at, value, size)
    names.append(name)
    return True


cdef inline int _give(Given* given, const void* token, uint64_t size, double count) except -1:
    if give(given, token, size, count) != 0:
        raise MemoryError("no memory for a batch")
    return 0
