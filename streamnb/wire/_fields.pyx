# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# Twin of: streamnb.wire.fields
"""The compiled `read_fields`: it reads the wanted values of JSON objects, and checks and skips the rest.

It takes a record only if all of it, the skipped values included, is UTF-8 and JSON of a kind that no two
parsers read differently. It leaves every other record to orjson, which says why it refuses some of them:

- what is not one object, and objects nested more than `DEPTH_MAX` deep;
- a key of a wanted path that occurs twice in its object, and a list or an object as a wanted value;
- skipped numbers that could be infinite: those with many digits, or with an exponent of three digits;
- escapes of half a surrogate pair.

A wanted number that is not surely exact is orjson's too, but without the rest of its record.

Anyone who may produce chooses these bytes. They are read once, from left to right, and strings are copied at
most twice. The nesting bounds the stack; beside the values, memory is taken for the largest record of a batch
once. Every bytes object ends with a zero byte, which JSON holds nowhere, so a scan that stops there needs no
check of the end.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from orjson import loads

from streamnb.wire._json_strings cimport RUN, escape, snb_run

cdef extern from "Python.h":
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)

cdef enum:
    LEFT = 0  # what the readers of a part return; -1 is an exception
    TAKEN = 1
    DEPTH_MAX = 32
    DIGITS_MAX = 15  # of a wanted number: it is below 2^53, so a double holds it, and one division rounds once
    SKIPPED_DIGITS_MAX = 200  # of a skipped number; with an exponent below 100 it is finite, or orjson would refuse it
    SKIPPED_EXPONENT_DIGITS_MAX = 2

cdef double[DIGITS_MAX + 1] POWERS_OF_TEN
for _n in range(DIGITS_MAX + 1):
    POWERS_OF_TEN[_n] = 10.0**_n


cdef struct Key:
    # A key of a path, in the tree of all paths.
    const uint8_t* text
    Py_ssize_t size
    Key* inner  # the keys that are wanted in the object at this key
    Py_ssize_t n_inner
    Py_ssize_t column  # of the value at this key, or -1
    Py_ssize_t seen  # the last row in which the key occurred


cdef inline bint _equal(const uint8_t* key, const uint8_t* text, Py_ssize_t size) noexcept nogil:
    """Compare short texts, most of which differ in their first byte."""
    cdef Py_ssize_t i
    for i in range(size):
        if key[i] != text[i]:
            return False
    return True


cdef inline const uint8_t* _digits(const uint8_t* at, uint64_t* number) noexcept nogil:
    """Append decimal digits to a number, which is wrong past 19 of them, and return their end."""
    while c"0" <= at[0] <= c"9":
        number[0] = number[0] * 10 + (at[0] - c"0")
        at += 1
    return at


@cython.final
cdef class _Reader:
    """Reads records, one after the other, into rows of columns."""

    cdef const uint8_t* at
    cdef const uint8_t* end  # of the record
    cdef const uint8_t* text  # the string that was read last: in the record, or without its escapes in `room`
    cdef Py_ssize_t text_size
    cdef bint text_is_ascii
    cdef uint8_t* room
    cdef Key* keys  # the first one is the record itself
    cdef list key_texts
    cdef list columns
    cdef Py_ssize_t row

    def __cinit__(self, paths, Py_ssize_t n, Py_ssize_t record_bytes):
        cdef Py_ssize_t i, inner
        tree = {}
        for column, path in enumerate(paths):
            keys = tree
            for text in path.split("."):
                key = keys.setdefault(text.encode("utf-8", "surrogatepass"), [-1, {}])
                keys = key[1]
            key[0] = column
        found, places = [(b"", -1, tree)], []
        for _, _, keys in found:  # breadth first: the keys of one object follow each other
            places.append(len(found))
            found += [(text, column, inner_keys) for text, (column, inner_keys) in keys.items()]
        self.columns = [[None] * n for _ in paths]
        self.key_texts = [text for text, _, _ in found]
        self.room = <uint8_t*> PyMem_Malloc(record_bytes)
        self.keys = <Key*> PyMem_Calloc(len(found), sizeof(Key))
        if self.room == NULL or self.keys == NULL:
            raise MemoryError("no memory to read records")
        for i, (text, column, keys) in enumerate(found):
            inner = places[i]
            self.keys[i] = Key(
                <const uint8_t*> PyBytes_AS_STRING(text), len(text), self.keys + inner, len(keys), column, -1
            )

    def __dealloc__(self):
        PyMem_Free(self.room)
        PyMem_Free(self.keys)

    cdef bint _record(self, Py_ssize_t row, bytes value) except -1:
        """Read a record."""
        self.row = row
        self.at = <const uint8_t*> PyBytes_AS_STRING(value)
        self.end = self.at + PyBytes_GET_SIZE(value)
        self._space()
        if self.at[0] == c"{" and self._object(self.keys, DEPTH_MAX):
            self._space()
            if self.at == self.end:
                return TAKEN
        for column in self.columns:
            (<list> column)[row] = None
        return LEFT

    cdef inline void _space(self) noexcept nogil:
        while self.at[0] == c" " or self.at[0] == c"\n" or self.at[0] == c"\r" or self.at[0] == c"\t":
            self.at += 1

    cdef inline bint _ends(self, uint8_t bracket) noexcept nogil:
        """Pass over a closing bracket, if there is one."""
        if self.at[0] != bracket:
            return False
        self.at += 1
        return True

    cdef bint _object(self, Key* key, int depth) except -1:
        """Read the object at a key; NULL is a key that is not wanted."""
        cdef Key* inner
        if not depth:
            return LEFT
        self.at += 1
        self._space()
        if self._ends(c"}"):
            return TAKEN
        while True:
            self._space()
            if self.at[0] != c'"' or not self._string() or not self._is_utf8():
                return LEFT
            inner = self._wanted(key)
            if inner != NULL:
                if inner.seen == self.row:
                    return LEFT
                inner.seen = self.row
            self._space()
            if self.at[0] != c":":
                return LEFT
            self.at += 1
            if not self._value(inner, depth - 1):
                return LEFT
            if self._ends(c"}"):
                return TAKEN
            if self.at[0] != c",":
                return LEFT
            self.at += 1

    cdef bint _list(self, int depth) except -1:
        """Pass over a list."""
        if not depth:
            return LEFT
        self.at += 1
        self._space()
        if self._ends(c"]"):
            return TAKEN
        while self._value(NULL, depth - 1):
            if self._ends(c"]"):
                return TAKEN
            if self.at[0] != c",":
                return LEFT
            self.at += 1
        return LEFT

    cdef inline Key* _wanted(self, Key* outer) noexcept nogil:
        """Return the wanted key of an object that has the last string as its text, or NULL."""
        cdef Key* key
        cdef Py_ssize_t i
        if outer != NULL:
            for i in range(outer.n_inner):
                key = outer.inner + i
                if key.size == self.text_size and _equal(key.text, self.text, self.text_size):
                    return key
        return NULL

    cdef bint _value(self, Key* key, int depth) except -1:
        """Read the value at a key, and the space around it."""
        cdef Py_ssize_t column = -1 if key == NULL else key.column
        cdef bint found
        self._space()
        if self.at[0] == c'"':
            found = self._string() and (self._put_text(column) if column >= 0 else self._is_utf8())
        elif self.at[0] == c"{":
            found = column < 0 and self._object(key, depth)
        elif self.at[0] == c"[":
            found = column < 0 and self._list(depth)
        elif self.at[0] == c"t":
            found = self._word(b"true") and self._put(column, True)
        elif self.at[0] == c"f":
            found = self._word(b"false") and self._put(column, False)
        elif self.at[0] == c"n":
            found = self._word(b"null")
        else:
            found = self._number(column)
        self._space()
        return found

    cdef inline bint _put(self, Py_ssize_t column, object value) except -1:
        """Put a value into a column, if there is one."""
        if column >= 0:
            (<list> self.columns[column])[self.row] = value
        return TAKEN

    cdef inline bint _word(self, const char* word) noexcept nogil:
        while word[0]:
            if self.at[0] != word[0]:
                return LEFT
            self.at += 1
            word += 1
        return TAKEN

    cdef bint _number(self, Py_ssize_t column) except -1:
        """Read a number."""
        cdef const uint8_t* sign = self.at
        cdef bint negative = sign[0] == c"-"
        cdef const uint8_t* begin = sign + negative
        cdef const uint8_t* point
        cdef const uint8_t* exponent
        cdef uint64_t digits = 0, ignored = 0
        cdef Py_ssize_t n_digits, n_after = 0, n_exponent = 0
        cdef double number
        point = begin + 1 if begin[0] == c"0" else _digits(begin, &digits)
        self.at = point
        n_digits = point - begin
        if not n_digits:
            return LEFT
        if point[0] == c".":
            self.at = _digits(point + 1, &digits)
            n_after = self.at - point - 1
            if not n_after:
                return LEFT
        n_digits += n_after
        if self.at[0] == c"e" or self.at[0] == c"E":
            exponent = self.at + 1
            if exponent[0] == c"+" or exponent[0] == c"-":
                exponent += 1
            self.at = _digits(exponent, &ignored)
            n_exponent = self.at - exponent
            if not n_exponent:
                return LEFT
        if column < 0:
            return n_digits <= SKIPPED_DIGITS_MAX and n_exponent <= SKIPPED_EXPONENT_DIGITS_MAX
        if n_digits > DIGITS_MAX or n_exponent:
            return self._put_as_orjson(column, sign)
        if not n_after:
            return self._put(column, -<int64_t> digits if negative else <int64_t> digits)
        number = <double> digits / POWERS_OF_TEN[n_after]
        return self._put(column, -number if negative else number)

    cdef bint _put_as_orjson(self, Py_ssize_t column, const uint8_t* begin) except -1:
        """Put the number that begins there and ends here into a column, unless orjson finds it infinite."""
        try:
            number = loads(PyBytes_FromStringAndSize(<const char*> begin, self.at - begin))
        except ValueError:
            return LEFT
        return self._put(column, number)

    cdef bint _string(self) noexcept nogil:
        """Read a string; whether it is UTF-8 remains to be seen."""
        cdef const uint8_t* begin = self.at + 1
        cdef const uint8_t* at = begin
        cdef uint8_t* to = self.room
        cdef int n, not_ascii = 0
        while True:
            n = RUN
            while n == RUN and self.end - at >= RUN:
                n = snb_run(at, to, &not_ascii)
                at += n
                to += n
            if n == RUN:  # the record ends soon
                while at[0] >= 0x20 and at[0] != c'"' and at[0] != c"\\":
                    not_ascii |= at[0] & 0x80
                    to[0] = at[0]
                    at += 1
                    to += 1
            if at[0] == c'"':
                break
            if at[0] != c"\\":
                return LEFT
            at = escape(at, &to)
            if at == NULL:
                return LEFT
            not_ascii |= (to - 1)[0] & 0x80
        self.at = at + 1
        self.text_size = to - self.room
        self.text = begin if self.text_size == at - begin else self.room  # without an escape, or with one
        self.text_is_ascii = not not_ascii
        return TAKEN

    cdef inline bint _is_utf8(self) except -1:
        return self.text_is_ascii or self._decoded() is not None

    cdef inline bint _put_text(self, Py_ssize_t column) except -1:
        """Put the last string into a column, if it is UTF-8."""
        cdef object text
        if self.text_is_ascii:
            text = PyUnicode_New(self.text_size, 127)
            memcpy(PyUnicode_DATA(text), self.text, self.text_size)
        else:
            text = self._decoded()
            if text is None:
                return LEFT
        return self._put(column, text)

    cdef object _decoded(self):
        """Return the last string, or None if it is not UTF-8."""
        try:
            return PyUnicode_DecodeUTF8(<const char*> self.text, self.text_size, NULL)
        except UnicodeDecodeError:
            return None


def read_fields(values, paths, Py_ssize_t bytes_max):
    """Return the columns of the records that are surely JSON objects, and the rows that were left."""
    cdef Py_ssize_t row, largest = 0
    cdef list left = []
    for value in values:
        if type(value) is bytes and largest < PyBytes_GET_SIZE(value) <= bytes_max:
            largest = PyBytes_GET_SIZE(value)
    cdef _Reader reader = _Reader(paths, len(values), largest)
    for row, value in enumerate(values):
        if type(value) is not bytes or PyBytes_GET_SIZE(value) > largest or not reader._record(row, value):
            left.append(row)
    return reader.columns, left
