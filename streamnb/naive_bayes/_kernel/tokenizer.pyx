# cython: language_level=3, boundscheck=False, wraparound=False
# Twin of: streamnb.naive_bayes.features.tokenizer, streamnb.naive_bayes.features.alphabet
"""The alphabet of the compiled tokenizer: pages of 256 code points, read from the plain alphabet and cached."""

from streamnb.naive_bayes.features import alphabet as plain
from streamnb.naive_bayes.features import entities as whole

from libc.stdlib cimport malloc
from libc.string cimport memset

from streamnb.naive_bayes._kernel.entities cimport BEGINS_WORD, DIGIT, HOST_MARK, LETTER, NAME_MARK, SLASH, URL_MARK

_KINDS = {
    plain.WORD: WORD,
    plain.MARK: MARK,
    plain.CJK: CJK,
    plain.SPACE: SPACE,
    plain.JOINER: JOINER,
    plain.REGION: REGION,
    plain.TONE: TONE,
    plain.OTHER: OTHER,
}

cdef uint32_t EXPANDS = 0xFFFFFFFF  # a lower case of several code points
cdef Alphabet letters
memset(&letters, 0, sizeof(Alphabet))


cdef Alphabet* alphabet() except NULL:
    """Return the one alphabet of this process; its first page is loaded."""
    return &letters


cdef bint latin_stays = True  # the lower case of every Latin-1 character is Latin-1: the first page is enough


cdef int load(uint32_t number) except -1:
    """Load the kinds and lower cases of 256 code points."""
    cdef Page* page = <Page*>malloc(sizeof(Page))
    cdef uint32_t i
    if page == NULL:
        raise MemoryError("no memory for a page of Unicode")
    kinds = plain.kind_page(number)
    for i in range(256):
        page.kind[i] = _KINDS[kinds[i]]
        low = plain.lower(chr(256 * number + i))
        page.lower[i] = ord(low) if len(low) == 1 else EXPANDS
    letters.pages[number] = page
    return 0


cdef uint32_t low_of(uint32_t point) except? 0:
    """Return a code point's lower case; load its page and the lower case's page."""
    cdef uint32_t low
    if letters.pages[point >> 8] == NULL:
        load(point >> 8)
    low = letters.pages[point >> 8].lower[point & 255]
    if low != EXPANDS and letters.pages[low >> 8] == NULL:
        load(low >> 8)
    return low


cdef object point_at(Text* text, string):
    """Point `text` at a string and load every page it needs; return the string to keep alive.

    A code point whose lower case has several is put into lower case here.
    """
    cdef Py_ssize_t i
    cdef bint expands = False
    if PyUnicode_KIND(string) == 1 and latin_stays:
        text.kind = 0 if PyUnicode_IS_ASCII(string) else 1
    else:
        for i in range(PyUnicode_GET_LENGTH(string)):
            if low_of(PyUnicode_READ(PyUnicode_KIND(string), PyUnicode_DATA(string), i)) == EXPANDS:
                expands = True
        if expands:
            string = plain.expanded(string)
            for i in range(PyUnicode_GET_LENGTH(string)):
                low_of(PyUnicode_READ(PyUnicode_KIND(string), PyUnicode_DATA(string), i))
        text.kind = PyUnicode_KIND(string)
    text.data = PyUnicode_DATA(string)
    text.size = PyUnicode_GET_LENGTH(string)
    return string


load(0)
for _code in range(256):
    latin_stays = latin_stays and letters.pages[0].lower[_code] < 256
for _code in range(128):
    letters.word[_code] = letters.pages[0].lower[_code] if letters.pages[0].kind[_code] == WORD else 0
    letters.parts[_code] = (
        (letters.pages[0].kind[_code] == WORD and BEGINS_WORD | LETTER)
        | (chr(_code) in whole.URL_MARKS and URL_MARK)
        | (chr(_code) in whole.NAME_MARKS and NAME_MARK)
        | (chr(_code) in whole.HOST_MARKS and HOST_MARK)
        | (chr(_code).isdigit() and DIGIT)
        | (chr(_code) == "/" and SLASH)
    )
for _kind, _code in _KINDS.items():
    letters.parts[128 | _code] = (_kind in whole.LETTERS and LETTER) | (_kind == plain.WORD and BEGINS_WORD)
