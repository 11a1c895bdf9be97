# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
# Twin of: streamnb.transports.kafka.sink
"""The compiled `append_rows`: many rows go into the open batch of a producer, instead of one by `send`.

It writes the bytes that the builder of kafka-python writes for the same rows, record by record. The header of
the batch, its checksum, its compression and its sequence number are left to that builder. What is not plain
bytes, or does not fit, is not taken, so that `send` decides about it.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef extern from "Python.h":
    # With borrowed references, which the caller's columns keep alive.
    PyObject* item_of_list "PyList_GET_ITEM"(PyObject* column, Py_ssize_t i) noexcept
    PyObject* item_of_tuple "PyTuple_GET_ITEM"(PyObject* pair, Py_ssize_t i) noexcept
    Py_ssize_t size_of_list "PyList_GET_SIZE"(PyObject* column) noexcept
    Py_ssize_t size_of_tuple "PyTuple_GET_SIZE"(PyObject* pair) noexcept
    bint is_list "PyList_CheckExact"(PyObject* what) noexcept
    bint is_tuple "PyTuple_CheckExact"(PyObject* what) noexcept
    bint is_bytes "PyBytes_CheckExact"(PyObject* what) noexcept
    bint is_text "PyUnicode_CheckExact"(PyObject* what) noexcept
    char* bytes_of "PyBytes_AS_STRING"(PyObject* what) noexcept
    Py_ssize_t size_of_bytes "PyBytes_GET_SIZE"(PyObject* what) noexcept
    const char* utf8_of "PyUnicode_AsUTF8AndSize"(PyObject* text, Py_ssize_t* size) noexcept
    void PyErr_Clear() noexcept
    PyObject* Py_None

cdef enum:
    ATTRIBUTES_BYTES = 1
    NULL_BYTES = 1  # a length of -1


cdef inline uint64_t _zigzag(int64_t number) noexcept:
    return (<uint64_t> number << 1) ^ <uint64_t> (number >> 63)


cdef inline Py_ssize_t _varint_bytes(int64_t number) noexcept:
    cdef uint64_t left = _zigzag(number) >> 7
    cdef Py_ssize_t n = 1
    while left:
        left >>= 7
        n += 1
    return n


cdef inline char* _put_varint(char* to, int64_t number) noexcept:
    cdef uint64_t left = _zigzag(number)
    while left > 0x7F:
        to[0] = <char> (left | 0x80)
        left >>= 7
        to += 1
    to[0] = <char> left
    return to + 1


cdef inline char* _put(char* to, const char* data, Py_ssize_t size) noexcept:
    to = _put_varint(to, size)
    memcpy(to, data, size)
    return to + size


cdef inline char* _put_bytes(char* to, PyObject* data) noexcept:
    return _put_varint(to, -1) if data is Py_None else _put(to, bytes_of(data), size_of_bytes(data))


cdef inline Py_ssize_t _bytes_bytes(PyObject* data) noexcept:
    """Return the size of bytes or None with the length before it, or -1 for anything else."""
    if data is Py_None:
        return NULL_BYTES
    if not is_bytes(data):
        return -1
    return _varint_bytes(size_of_bytes(data)) + size_of_bytes(data)


cdef inline Py_ssize_t _length(PyObject* headers) noexcept:
    """Return the number of headers, or -1 if they are neither a list nor a tuple."""
    if is_tuple(headers):
        return size_of_tuple(headers)
    return size_of_list(headers) if is_list(headers) else -1


cdef inline PyObject* _header(PyObject* headers, Py_ssize_t i) noexcept:
    return item_of_tuple(headers, i) if is_tuple(headers) else item_of_list(headers, i)


cdef Py_ssize_t _headers_bytes(PyObject* headers) noexcept:
    """Return the size of the headers with their number before them, or -1 if `send` must look at them."""
    cdef Py_ssize_t n = _length(headers), size, found, i
    cdef PyObject* pair
    if n < 0:
        return -1
    size = _varint_bytes(n)
    for i in range(n):
        pair = _header(headers, i)
        if not is_tuple(pair) or size_of_tuple(pair) != 2:
            return -1
        if not is_text(item_of_tuple(pair, 0)) or not is_bytes(item_of_tuple(pair, 1)):
            return -1
        if utf8_of(item_of_tuple(pair, 0), &found) == NULL:  # a lone surrogate
            PyErr_Clear()
            return -1
        size += _varint_bytes(found) + found + _bytes_bytes(item_of_tuple(pair, 1))
    return size


cdef char* _put_headers(char* to, PyObject* headers) noexcept:
    cdef Py_ssize_t n = _length(headers), size, i
    cdef const char* name
    to = _put_varint(to, n)
    for i in range(n):
        name = utf8_of(item_of_tuple(_header(headers, i), 0), &size)
        to = _put_bytes(_put(to, name, size), item_of_tuple(_header(headers, i), 1))
    return to


def append_rows(
    records,
    list values not None,
    list keys not None,
    list headers not None,
    Py_ssize_t begin,
    Py_ssize_t rows_max,
    Py_ssize_t bytes_max,
    Py_ssize_t record_bytes_max,
    int64_t timestamp_ms,
):
    """Append rows from `begin` on to a batch, and return their number, their bytes and the largest record."""
    if records._closed:
        return 0, 0, 0
    builder = records._builder
    if builder._first_timestamp is None:
        return 0, 0, 0
    cdef bytearray buffer = builder._buffer
    cdef int64_t delta = timestamp_ms - <int64_t> builder._first_timestamp, first = records._next_offset
    cdef Py_ssize_t space = <Py_ssize_t> builder._batch_size - PyByteArray_GET_SIZE(buffer)
    cdef Py_ssize_t end = min(len(values), len(keys), len(headers)), n = 0, row, fixed, of_key, of_value
    cdef Py_ssize_t of_headers, content, body, size, taken = 0, held = 0, largest = 0
    cdef Py_ssize_t* bodies
    cdef char* to
    cdef PyObject* key
    cdef PyObject* value
    if begin < 0 or begin >= end or rows_max <= 0:
        return 0, 0, 0
    rows_max = min(rows_max, end - begin)
    bodies = <Py_ssize_t*> malloc(rows_max * sizeof(Py_ssize_t))
    if bodies == NULL:
        raise MemoryError("no memory for the sizes of rows")
    try:
        fixed = ATTRIBUTES_BYTES + _varint_bytes(delta)
        while n < rows_max:
            row = begin + n
            key, value = item_of_list(<PyObject*> keys, row), item_of_list(<PyObject*> values, row)
            of_key, of_value = _bytes_bytes(key), _bytes_bytes(value)
            of_headers = _headers_bytes(item_of_list(<PyObject*> headers, row))
            if of_key < 0 or of_value < 0 or of_headers < 0:
                break
            content = of_key + of_value + of_headers
            body = fixed + _varint_bytes(first + n) + content
            size = body + _varint_bytes(body)
            of_key = 0 if key is Py_None else size_of_bytes(key)
            of_value = 0 if value is Py_None else size_of_bytes(value)
            if content > record_bytes_max or taken + size > space or held + of_key + of_value > bytes_max:
                break
            bodies[n] = body
            taken += size
            held += of_key + of_value
            largest = max(largest, size)
            n += 1
        if n == 0:
            return 0, 0, 0
        size = PyByteArray_GET_SIZE(buffer)
        PyByteArray_Resize(buffer, size + taken)
        to = PyByteArray_AS_STRING(buffer) + size
        for row in range(n):
            to = _put_varint(to, bodies[row])
            to[0] = 0  # the attributes
            to = _put_varint(_put_varint(to + ATTRIBUTES_BYTES, delta), first + row)
            to = _put_bytes(to, item_of_list(<PyObject*> keys, begin + row))
            to = _put_bytes(to, item_of_list(<PyObject*> values, begin + row))
            to = _put_headers(to, item_of_list(<PyObject*> headers, begin + row))
    finally:
        free(bodies)
    if builder._max_timestamp < timestamp_ms:
        builder._max_timestamp = timestamp_ms
    builder._num_records += n
    builder._last_offset = first + n - 1
    records._next_offset = first + n
    return n, held, largest
