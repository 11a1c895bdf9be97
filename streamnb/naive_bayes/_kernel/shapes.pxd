# Twin of: streamnb.naive_bayes.features.shapes

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from streamnb.naive_bayes._kernel.readers cimport Features, Part, add_feature
from streamnb.naive_bayes._kernel.tokenizer cimport (
    CJK, JOINER, MARK, SPACE, WORD, Alphabet, PyUnicode_READ, Scratch, Text, allocate, write_utf8
)


cdef inline uint32_t point_of(const Text* text, uint64_t i) noexcept nogil:
    if text.kind == 0:
        return (<const uint8_t*>text.data)[i]
    return PyUnicode_READ(text.kind, text.data, <Py_ssize_t>i)


cdef inline uint8_t letter_of(const Alphabet* letters, uint32_t point) noexcept nogil:
    """Return the letter of a code point in a shape, a space, or 0 for a sign."""
    cdef uint8_t kind = letters.pages[point >> 8].kind[point & 255]
    if kind == SPACE or kind == JOINER:
        return c" "
    if kind != WORD and kind != MARK and kind != CJK:
        return 0
    if point == c"_":
        return c"_"
    if c"0" <= point <= c"9":
        return c"9"
    return c"X" if letters.pages[point >> 8].lower[point & 255] != point else c"x"


cdef inline int read_shapes(
    Features* features, Scratch* scratch, const Part* part, const Text* text, uint64_t* n
) noexcept nogil:
    """Append the shapes of a text's words and its signs from index `n` on, each as often as it occurs."""
    cdef uint64_t at = allocate(scratch, 4 * text.size)
    cdef uint64_t start, length, run, i = 0, left = scratch.message_tokens_max
    cdef uint8_t letter, before
    if at == <uint64_t>-1:
        return -1
    while i < text.size and left:
        letter = letter_of(scratch.alphabet, point_of(text, i))
        if letter == c" ":
            i += 1
            continue
        start = at
        if letter == 0:
            at += write_utf8(point_of(text, i), scratch.bytes + at)
            i += 1
        length = run = before = 0
        while letter != 0 and letter != c" ":
            if length < scratch.token_length_max:
                run = run + 1 if letter == before else 1
                if run < 4:
                    scratch.bytes[at] = letter if run < 3 else c"+"
                    at += 1
                before = letter
                length += 1
            i += 1
            letter = letter_of(scratch.alphabet, point_of(text, i)) if i < text.size else c" "
        if add_feature(features, scratch, part, start, at - start, n) != 0:
            return -1
        left -= 1
    return 0
