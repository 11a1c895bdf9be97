# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The compiled twin of ``chunk.split(b"\\n")``, which looks at every byte by itself where `memchr` takes many at once."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr


def split(bytes chunk not None):
    """The pieces between newlines."""
    cdef const char* at = PyBytes_AS_STRING(chunk)
    cdef const char* end = at + PyBytes_GET_SIZE(chunk)
    cdef const char* found = <const char*> memchr(at, c"\n", end - at)
    cdef list pieces = []
    while found != NULL:
        pieces.append(PyBytes_FromStringAndSize(at, found - at))
        at = found + 1
        found = <const char*> memchr(at, c"\n", end - at)
    pieces.append(PyBytes_FromStringAndSize(at, end - at))
    return pieces
