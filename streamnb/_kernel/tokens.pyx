# cython: language_level=3, boundscheck=False, wraparound=False
"""The alphabet of the compiled tokenizer: pages of code points, as `streamnb.tokens` has them."""

from streamnb import tokens

from libc.stdlib cimport malloc
from libc.string cimport memset

_KINDS = (
    tokens.WORD,
    tokens.MARK,
    tokens.CJK,
    tokens.SPACE,
    tokens.JOINER,
    tokens.REGION,
    tokens.TONE,
    tokens.OTHER,
)

cdef uint32_t EXPANDS = 0xFFFFFFFF  # a lower case of several code points
cdef Alphabet letters
memset(&letters, 0, sizeof(Alphabet))


cdef Alphabet* alphabet() except NULL:
    """The one alphabet of this process; its first page is there."""
    return &letters


cdef int load(uint32_t number) except -1:
    """Ask for the kinds and lower cases of 256 code points."""
    cdef Page* page = <Page*>malloc(sizeof(Page))
    cdef uint32_t i
    if page == NULL:
        raise MemoryError("no memory for a page of Unicode")
    kinds = tokens.kind_page(number)
    for i in range(256):
        page.kind[i] = _KINDS.index(kinds[i])
        low = tokens.lower(chr(256 * number + i))
        page.lower[i] = ord(low) if len(low) == 1 else EXPANDS
    letters.pages[number] = page
    return 0


cdef uint32_t low_of(uint32_t point) except? 0:
    """A code point's lower case, its page and its lower case's page loaded."""
    cdef uint32_t low
    if letters.pages[point >> 8] == NULL:
        load(point >> 8)
    low = letters.pages[point >> 8].lower[point & 255]
    if low != EXPANDS and letters.pages[low >> 8] == NULL:
        load(low >> 8)
    return low


cdef object point_at(Text* text, whole):
    """Point at a string, every page it needs loaded; returns what has to be kept alive.

    A string whose lower case has more code points than itself is put into lower case here.
    """
    cdef Py_ssize_t i
    cdef bint expands = False
    if not PyUnicode_IS_ASCII(whole):
        for i in range(PyUnicode_GET_LENGTH(whole)):
            if low_of(PyUnicode_READ(PyUnicode_KIND(whole), PyUnicode_DATA(whole), i)) == EXPANDS:
                expands = True
        if expands:
            whole = tokens.lower(whole)
            for i in range(PyUnicode_GET_LENGTH(whole)):
                low_of(PyUnicode_READ(PyUnicode_KIND(whole), PyUnicode_DATA(whole), i))
        text.kind = PyUnicode_KIND(whole)
    text.data = PyUnicode_DATA(whole)
    text.size = PyUnicode_GET_LENGTH(whole)
    return whole


load(0)
for _code in range(128):
    letters.word[_code] = letters.pages[0].lower[_code] if letters.pages[0].kind[_code] == WORD else 0
