# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
# Twin of: streamnb.wire.template
"""The compiled `filled`: each part of a row is copied once, from its column straight into the row."""

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(PyObject* list, Py_ssize_t i) noexcept nogil  # a borrowed reference
    bint is_bytes "PyBytes_CheckExact"(PyObject* part) noexcept nogil
    char* bytes_of "PyBytes_AS_STRING"(PyObject* part) noexcept nogil
    Py_ssize_t size_of "PyBytes_GET_SIZE"(PyObject* part) noexcept nogil


cdef struct Place:
    # A column of a table or of objects; the piece after it; and its part of the current row.
    const int64_t* ends  # of the table's cells, or NULL
    const char* text
    int64_t width, column
    PyObject* objects
    const char* piece
    Py_ssize_t piece_size
    const char* part
    Py_ssize_t part_size


cdef inline bint _find(Place* place, Py_ssize_t row) noexcept nogil:
    """Point to a row's part; return False if it is not bytes."""
    cdef int64_t cell, begin
    cdef PyObject* part
    if place.ends == NULL:
        part = PyList_GET_ITEM(place.objects, row)
        if not is_bytes(part):
            return False
        place.part, place.part_size = bytes_of(part), size_of(part)
        return True
    cell = row * place.width + place.column
    begin = place.ends[cell - 1] + 1 if cell else 0
    place.part, place.part_size = place.text + begin, place.ends[cell] - begin
    return True


def _opened(columns):
    """Return (column, ends of its cells or None, width, column in the table) for every place, and the rows."""
    found, rows = [], set()
    for column in columns:
        if isinstance(column, list):
            found.append((column, None, 0, 0))
            rows.add(len(column))
            continue
        text, width = column
        commas = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(","))
        if width and (len(commas) + 1) % width:
            raise ValueError(f"{len(commas) + 1} cells are no table of {width} columns")
        if width:
            rows.add((len(commas) + 1) // width)
        ends = np.append(commas, len(text)).astype(np.int64)
        found += [(text, ends, width, c) for c in range(width)]
    if len(rows) > 1:
        raise ValueError(f"columns of {sorted(rows)} rows")
    return found, max(rows, default=0)


def filled(pieces, columns):
    """Return the rows: each holds the pieces, and between them its own part of every column."""
    found, n_rows = _opened(columns)
    cdef list between = list(pieces), rows = []
    if not found or len(between) != len(found) + 1:
        raise ValueError(f"{len(between)} pieces cannot hold {len(found)} columns between them")
    cdef Py_ssize_t n_places = len(found), n = n_rows, fixed = sum(map(len, between)), row, p, total
    cdef const int64_t[::1] ends
    cdef bytes first = between[0], text, out
    cdef char* to
    cdef Place* places = <Place*> malloc(n_places * sizeof(Place))
    if places == NULL:
        raise MemoryError("no memory for a template")
    try:
        for p, (column, cells, width, c) in enumerate(found):
            text = between[p + 1]
            places[p].piece, places[p].piece_size = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
            places[p].ends, places[p].width, places[p].column = NULL, width, c
            places[p].objects = <PyObject*> column
            if cells is not None:
                ends, text = cells, column
                places[p].ends, places[p].text = &ends[0], PyBytes_AS_STRING(text)
        for row in range(n):
            total = fixed
            for p in range(n_places):
                if not _find(&places[p], row):
                    raise TypeError("a column holds something other than bytes")
                total += places[p].part_size
            out = PyBytes_FromStringAndSize(NULL, total)
            to = PyBytes_AS_STRING(out)
            memcpy(to, PyBytes_AS_STRING(first), PyBytes_GET_SIZE(first))
            to += PyBytes_GET_SIZE(first)
            for p in range(n_places):
                memcpy(to, places[p].part, places[p].part_size)
                to += places[p].part_size
                memcpy(to, places[p].piece, places[p].piece_size)
                to += places[p].piece_size
            rows.append(out)
    finally:
        free(places)
    return rows
