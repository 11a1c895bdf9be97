# Twin of: streamnb.naive_bayes.features.strings
#
# The strings of a text: `Strings.features`. A string with bytes outside ASCII is written in Latin-1's UTF-8, as the
# plain twin's tokens are: then all strings are slices of one text.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from streamnb.naive_bayes._kernel.readers cimport Feature, Features, Link, View, count_features
from streamnb.naive_bayes._kernel.tokenizer cimport PyUnicode_READ, Scratch, Text, allocate, grow, write_utf8


cdef inline int read_strings(
    Features* features, Scratch* scratch, const View* view, uint64_t v, const Text* text, uint64_t* n
) noexcept nogil:
    """Append the distinct strings of a text from index `n` on, linked to those without a byte at either end."""
    cdef uint64_t order = view.n, first = n[0], length = 0, size, start, total, i
    cdef Feature* feature
    features.longest[v] = first
    if text.size == 0:
        return 0
    if write_window(scratch, text, order, view.characters_max, &length) != 0:
        return -1
    length += order
    total = (order + 1) * length - order * (order + 1) // 2 + 1
    if (
        grow(<void**>&features.items, &features.capacity, first + total, sizeof(Feature)) != 0
        or grow(<void**>&features.links, &features.links_capacity, first + total, sizeof(Link)) != 0
        or grow(<void**>&features.kept, &features.kept_capacity, total, sizeof(uint32_t)) != 0
    ):
        return -1
    feature = features.items + first
    size = order + 1
    while size > 0:
        for start in range(length - size + 1):
            feature.start = scratch.places[start]
            feature.size = scratch.places[start + size] - scratch.places[start]
            feature += 1
        size -= 1
    feature.start, feature.size = scratch.places[0], 0  # the empty string, once instead of `length` times
    n[0] = first + total
    if count_features(features, scratch, view.store, first, n, features.kept) != 0:
        return -1
    features.items[n[0] - 1].f = <double>length
    link_strings(features, order, length)
    features.longest[v] = features.kept[length - order]  # the first string that is shorter
    return 0


cdef inline void link_strings(Features* features, uint64_t order, uint64_t length) noexcept nogil:
    """Link each string to those without its first and without its last byte, which are the next shorter ones."""
    cdef uint64_t size = order + 1, start, at = 0, shorter
    cdef Link* link
    while size > 0:
        shorter = at + length - size + 1
        for start in range(length - size + 1):
            link = features.links + features.kept[at + start]
            link.head = features.kept[shorter + start if size > 1 else shorter]
            link.tail = features.kept[shorter + start + 1 if size > 1 else shorter]
        at = shorter
        size -= 1


cdef inline int write_window(
    Scratch* scratch, const Text* text, uint64_t order, uint64_t most, uint64_t* length
) noexcept nogil:
    """Write `order` spaces and the first bytes of a text, `most` at most, with the place of each in the scratch."""
    cdef uint64_t i, j, size, at, read = 0
    cdef uint32_t point
    cdef uint8_t[4] encoded
    cdef uint8_t byte
    size = 4 * text.size if text.size < most else most  # code points of a long text may have more bytes
    size = size if size < most else most
    at = allocate(scratch, order + 2 * size)
    if at == <uint64_t>-1:
        return -1
    if grow(<void**>&scratch.places, &scratch.places_capacity, order + size + 1, sizeof(uint64_t)) != 0:
        return -1
    for i in range(order):
        scratch.places[i] = at
        scratch.bytes[at] = c" "
        at += 1
    for i in range(text.size):
        if read == most:
            break
        if text.kind == 0:
            encoded[0] = (<const uint8_t*>text.data)[i]
            size = 1
        else:
            point = PyUnicode_READ(text.kind, text.data, <Py_ssize_t>i)
            size = write_utf8(point, encoded)
        for j in range(size):
            if read == most:
                break
            byte = encoded[j]
            if c"A" <= byte <= c"Z":
                byte += 32
            scratch.places[order + read] = at
            at += write_utf8(byte, scratch.bytes + at)
            read += 1
    scratch.places[order + read] = at
    length[0] = read
    return 0
