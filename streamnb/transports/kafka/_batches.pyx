# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
# Twin of: streamnb.transports.kafka.batches
"""The compiled reader of record batches of magic 2: it cuts decompressed bytes into columns.

It takes only what it surely understands, and stops before any other record. The plain path, which is the
client's own decoder, then takes or refuses that one record, and names the fault. Its bytes come from anyone
who may produce: nothing is read outside of them, and no number in them chooses how much memory is taken.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #define snb_sum_overflows(a, b, sum) __builtin_add_overflow(a, b, sum)
    """
    bint snb_sum_overflows(int64_t a, int64_t b, int64_t* sum) noexcept nogil


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef struct Record:
    int64_t length  # as the record states it: without the length itself
    int64_t after_ms, delta
    const uint8_t* key
    int64_t key_size  # -1 for null, as for the value
    const uint8_t* value
    int64_t value_size
    int64_t n_headers


cdef inline bint _number(Cursor* cursor, int64_t* number) noexcept nogil:
    """Read a varint of at most 64 bits; return False for any other."""
    cdef uint64_t bits = 0, byte
    cdef int shift = 0
    while shift < 64 and cursor.at < cursor.end:
        byte = cursor.at[0]
        cursor.at += 1
        if shift == 63 and byte > 1:
            return False
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            number[0] = <int64_t> (bits >> 1) ^ -<int64_t> (bits & 1)
            return True
        shift += 7
    return False


cdef inline bint _bytes(Cursor* cursor, const uint8_t** data, int64_t* size) noexcept nogil:
    """Pass over bytes that follow their length, or over a null; return False if they are not all there."""
    if not _number(cursor, size) or size[0] < -1 or size[0] > cursor.end - cursor.at:
        return False
    data[0] = cursor.at
    if size[0] > 0:
        cursor.at += size[0]
    return True


cdef inline bint _open(Cursor* cursor, Record* record) noexcept nogil:
    """Read a record up to its headers, and end the cursor with the record; return False if it is odd."""
    if not _number(cursor, &record.length):
        return False
    if record.length < 1 or record.length > cursor.end - cursor.at:
        return False
    cursor.end = cursor.at + record.length
    if cursor.at[0] >= 0x80:  # attributes: a byte without a meaning, which the client reads as a varint
        return False
    cursor.at += 1
    return (
        _number(cursor, &record.after_ms)
        and _number(cursor, &record.delta)
        and _bytes(cursor, &record.key, &record.key_size)
        and _bytes(cursor, &record.value, &record.value_size)
        and _number(cursor, &record.n_headers)
        and record.n_headers >= 0
    )


cdef list _headers(Cursor* cursor, int64_t n):
    """Read the headers of a record; return None if they are not all there, or a name is not UTF-8."""
    cdef list found = []
    cdef const uint8_t* name
    cdef const uint8_t* value
    cdef int64_t name_size, value_size
    while n:
        if not _bytes(cursor, &name, &name_size) or name_size < 0:
            return None
        if not _bytes(cursor, &value, &value_size):
            return None
        try:
            text = PyUnicode_DecodeUTF8(<const char*> name, name_size, NULL)
        except UnicodeDecodeError:
            return None
        found.append((text, b"" if value_size <= 0 else PyBytes_FromStringAndSize(<const char*> value, value_size)))
        n -= 1
    return found


cdef inline object _of(const uint8_t* data, int64_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char*> data, size)


def cut(
    buffer,
    Py_ssize_t at,
    int64_t left,
    int64_t base_offset,
    int64_t base_ms,
    bint same_ms,
    int64_t first_offset,
    int64_t records_max,
    int64_t bytes_max,
    int64_t header_bytes,
    int64_t headers_max,
):
    """Return the next records of a batch as columns, as `Columns` takes them, or None if the next one is odd."""
    cdef list offsets = [], values = [], keys = [], times = [], headers = [], of_one
    cdef int64_t offset = 0, last = 0, ms = base_ms, n = 0, n_headers = 0, size = 0
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Record record
    cdef const uint8_t* begin
    cdef const uint8_t* next_record
    cdef const uint8_t* end
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= at <= view.len:  # the client takes a last record that is cut short, and stands behind it
            return None
        begin = <const uint8_t*> view.buf
        next_record, end = begin + at, begin + view.len
        while n < left and len(offsets) < records_max:
            cursor.at, cursor.end = next_record, end
            if not _open(&cursor, &record) or record.n_headers > headers_max:
                break
            if snb_sum_overflows(base_offset, record.delta, &offset) or (n and offset <= last):
                break
            if not same_ms and snb_sum_overflows(base_ms, record.after_ms, &ms):
                break
            of_one = None
            if record.n_headers:
                of_one = _headers(&cursor, record.n_headers)
                if of_one is None:
                    break
            if cursor.at != cursor.end:
                break
            if offset >= first_offset:
                values.append(_of(record.value, record.value_size))
                keys.append(_of(record.key, record.key_size))
                offsets.append(offset)
                times.append(ms)
                headers.append(() if of_one is None else of_one)
                n_headers += record.n_headers
            n += 1
            last, next_record = offset, cursor.end
            size += record.length
            if offset >= first_offset and size + header_bytes * n_headers >= bytes_max:
                break
        if not n:
            return None
        return offsets, values, keys, times, headers, last, n, next_record - begin, size, n_headers
    finally:
        PyBuffer_Release(&view)
