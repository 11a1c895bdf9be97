# cython: language_level=3, freethreading_compatible=True
# Twin of: nothing; the plain statistics keep their numbers in Python's lists and dicts
"""Buffers that a store fills and that numpy arrays show without a copy.

A snapshot is read straight into buffers, and a store takes them over. The other way round, frozen arrays show
a store's own buffers: as long as an array shows a buffer, the store does not move it. When it has to grow, the
store replaces it with a copy.
"""

import numpy as np

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.tokenizer cimport SLACK

cdef extern from *:
    """
    #define snb_add(counter, n) __atomic_add_fetch(&(counter), n, __ATOMIC_SEQ_CST)
    """
    Py_ssize_t snb_add(Py_ssize_t counter, Py_ssize_t n) noexcept nogil


cdef class Buffer:
    """Memory that Python may write to: zeros at first, with `SLACK` bytes after it.

    Parameters
    ----------
    size : int
        In bytes.

    Raises
    ------
    MemoryError
        There is not that much memory.
    """

    def __cinit__(self, uint64_t size):
        self.data = <uint8_t*>calloc(size + SLACK, 1) if size + SLACK > size else NULL
        if self.data == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        self.size = size

    def __dealloc__(self):
        free(self.data)

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, <Py_ssize_t>self.size, 0, flags)
        snb_add(self.exports, 1)

    def __releasebuffer__(self, Py_buffer* view):
        snb_add(self.exports, -1)


cdef Buffer resized(Buffer buffer, uint64_t size):
    """Return a buffer of another size that begins with the same bytes: the same buffer, if no array shows it."""
    cdef uint8_t* moved
    cdef Buffer fresh
    if buffer.exports == 0:
        moved = <uint8_t*>realloc(buffer.data, size + SLACK)
        if moved == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        buffer.data, buffer.size = moved, size
        return buffer
    fresh = Buffer(size)
    memcpy(fresh.data, buffer.data, size if size < buffer.size else buffer.size)
    return fresh


cdef Buffer found_under(object array, uint64_t size):
    """Return the buffer that an array shows whole, if no store owns it; otherwise `None`."""
    cdef Buffer buffer
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    if not isinstance(array, Buffer):
        return None
    buffer = array
    return buffer if buffer.size == size and not buffer.owned else None
