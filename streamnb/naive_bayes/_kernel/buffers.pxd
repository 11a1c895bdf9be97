# Twin of: nothing; the plain statistics keep their numbers in Python's lists and dicts

from libc.stdint cimport uint8_t, uint64_t


cdef class Buffer:
    cdef uint8_t* data
    cdef readonly uint64_t size  # in bytes
    cdef Py_ssize_t exports  # arrays that show it
    cdef public bint owned  # by a store, which keeps its state here


cdef Buffer resized(Buffer buffer, uint64_t size)
cdef Buffer found_under(object array, uint64_t size)
