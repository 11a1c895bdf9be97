# Twin of: streamnb.naive_bayes.features.tokenizer
#
# `Tokenizer.split`. Only the plain alphabet defines the kind and lower case of a code point; `tokenizer.pyx`
# asks it for each page of 256 once and caches the page.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc

from streamnb.naive_bayes._kernel.ascii cimport Characters, read_characters, snb_trailing_zeros
from streamnb.naive_bayes._kernel.entities cimport Signs, whole_end

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object) noexcept
    int PyUnicode_KIND(object) noexcept
    void* PyUnicode_DATA(object) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object) noexcept
    uint32_t PyUnicode_READ(int kind, const void* data, Py_ssize_t i) noexcept nogil

cdef enum:
    PAGES = 4352  # of 256 code points each
    SLACK = 8  # bytes that may be read past a token, whatever they are

cdef enum:  # the kinds of code point in `streamnb.naive_bayes.features.alphabet`
    WORD, MARK, CJK, SPACE, JOINER, REGION, TONE, OTHER


cdef struct Page:
    uint8_t kind[256]
    uint32_t lower[256]


cdef struct Alphabet:
    Page* pages[PAGES]
    uint8_t word[256]  # the lower case of an ASCII character that belongs to a word; 0 for all others
    uint8_t parts[256]  # the parts that each sign may have in an entity; see entities.pxd


cdef struct Text:
    const void* data
    uint64_t size  # in code points
    int kind  # bytes per code point; 0 for ASCII


cdef struct Token:
    uint64_t start  # in the scratch
    uint64_t size


cdef struct Tokens:
    Token* items
    uint64_t n
    uint64_t capacity
    int truncated


cdef struct Scratch:  # the tokens and features of a message, as UTF-8
    uint8_t* bytes
    uint64_t size
    uint64_t capacity
    uint8_t* kinds  # of a text's code points, in lower case
    uint64_t kinds_capacity
    uint64_t* places  # where each begins among the bytes
    uint64_t places_capacity
    uint8_t* signs  # of a text's code points, if entities are one token
    uint64_t signs_capacity
    Alphabet* alphabet
    bint peers_words
    int whole  # NUMBERS, URLS, MAIL
    uint64_t token_length_max
    uint64_t message_tokens_max


cdef Alphabet* alphabet() except NULL
cdef object point_at(Text* text, whole)


cdef inline int grow(void** block, uint64_t* capacity, uint64_t needed, uint64_t item) noexcept nogil:
    """Make room for `needed` items and half as many again; return -1 without memory."""
    cdef uint64_t wanted
    cdef void* moved
    if needed <= capacity[0]:
        return 0
    wanted = needed + needed // 2 + 64
    moved = realloc(block[0], wanted * item)
    if moved == NULL:
        return -1
    block[0] = moved
    capacity[0] = wanted
    return 0


cdef inline uint64_t allocate(Scratch* scratch, uint64_t size) noexcept nogil:
    """Return the start of `size` new bytes with slack after them; all ones without memory."""
    cdef uint64_t start = scratch.size
    if grow(<void**>&scratch.bytes, &scratch.capacity, start + size + SLACK, 1) != 0:
        return <uint64_t>-1
    scratch.size = start + size
    return start


cdef inline int add_token(Tokens* tokens, uint64_t start, uint64_t size) noexcept nogil:
    if tokens.n == tokens.capacity:
        if grow(<void**>&tokens.items, &tokens.capacity, tokens.n + 1, sizeof(Token)) != 0:
            return -1
    tokens.items[tokens.n].start = start
    tokens.items[tokens.n].size = size
    tokens.n += 1
    return 0


cdef inline int read_tokens(Scratch* scratch, const Text* text, uint64_t size, Tokens* tokens) noexcept nogil:
    """Read the tokens of a text's first `size` code points."""
    tokens.n = 0
    tokens.truncated = 0
    if text.kind == 0 and scratch.whole:
        return split_ascii_whole(scratch, <const uint8_t*>text.data, size, tokens)
    if text.kind == 0:
        return split_ascii(scratch, <const uint8_t*>text.data, size, tokens)
    return split_unicode(scratch, text, size, tokens)


cdef inline int split_ascii(Scratch* scratch, const uint8_t* data, uint64_t size, Tokens* tokens) noexcept nogil:
    """Split ASCII text by the rule "unicode", words and single marks, or "words", words of two characters or more."""
    cdef uint64_t base = allocate(scratch, size)
    cdef uint64_t begin, start = 0, end, length, edges, word_before = 0, n
    cdef uint64_t is_word = 0, is_space = 1
    cdef uint8_t* low
    cdef Characters found
    if base == <uint64_t>-1:
        return -1
    low = scratch.bytes + base
    for begin in range(0, size + 1, 64):  # up to and including the end, where the last token ends
        if grow(<void**>&tokens.items, &tokens.capacity, tokens.n + 65, sizeof(Token)) != 0:
            return -1
        found = read_characters(data, begin, size, low)
        edges = ~(found.word & (found.word << 1 | word_before))  # all positions but the inside of words
        word_before = found.word >> 63
        if size - begin < 63:
            edges &= (<uint64_t>2 << (size - begin)) - 1
        n = tokens.n
        while edges:
            length = snb_trailing_zeros(edges)
            edges &= edges - 1
            end = begin + length
            tokens.items[n].start = base + start
            tokens.items[n].size = end - start
            if end - start > scratch.token_length_max:
                tokens.items[n].size = scratch.token_length_max
                tokens.truncated = 1
            if scratch.peers_words:
                n += is_word & (end - start > 1)
            else:
                n += 1 - is_space
            start = end
            is_word = found.word >> length & 1  # arithmetic instead of a branch, which the processor could not predict
            is_space = found.space >> length & 1
        tokens.n = n
        if n > scratch.message_tokens_max:
            tokens.n = scratch.message_tokens_max
            tokens.truncated = 1
            break
    return 0


cdef inline int split_ascii_whole(
    Scratch* scratch, const uint8_t* data, uint64_t size, Tokens* tokens
) noexcept nogil:
    """`split_ascii` where numbers, URLs or mail addresses are one token: character by character."""
    cdef const uint8_t* word = scratch.alphabet.word
    cdef const Page* page = scratch.alphabet.pages[0]
    cdef uint64_t base = allocate(scratch, size)
    cdef uint64_t i = 0, start, length, end
    cdef uint8_t letter
    cdef uint8_t* low
    cdef Signs signs = Signs(data, size, &scratch.alphabet.parts[0], scratch.whole, 0)
    if base == <uint64_t>-1:
        return -1
    low = scratch.bytes + base
    while i < size:
        start = i
        letter = word[data[i]]
        if letter:
            while letter:
                low[i] = letter
                i += 1
                if i == size:
                    break
                letter = word[data[i]]
            end = whole_end(&signs, start, i)
            while i < end:
                low[i] = word[data[i]] or data[i]
                i += 1
            if scratch.peers_words and i - start < 2:
                continue
        else:
            low[i] = data[i]
            i += 1
            if scratch.peers_words or page.kind[data[start]] == SPACE:
                continue
        if tokens.n == scratch.message_tokens_max:
            tokens.truncated = 1
            break
        length = i - start
        if length > scratch.token_length_max:
            length = scratch.token_length_max
            tokens.truncated = 1
        if add_token(tokens, base + start, length) != 0:
            return -1
    return 0


cdef inline int split_unicode(
    Scratch* scratch, const Text* text, uint64_t size, Tokens* tokens
) noexcept nogil:
    """Split text of any script: the twin of `_split_by_kind`, and of the rule "words"."""
    cdef uint64_t i, j, at, group
    cdef uint32_t point
    cdef uint8_t kind
    cdef uint8_t* kinds
    cdef Signs signs
    cdef const Alphabet* letters = scratch.alphabet
    at = allocate(scratch, 4 * size)
    if (
        at == <uint64_t>-1
        or grow(<void**>&scratch.kinds, &scratch.kinds_capacity, size + 1, 1) != 0
        or grow(<void**>&scratch.places, &scratch.places_capacity, size + 1, sizeof(uint64_t)) != 0
        or (scratch.whole and grow(<void**>&scratch.signs, &scratch.signs_capacity, size, 1) != 0)
    ):
        return -1
    kinds = scratch.kinds
    for i in range(size):
        point = PyUnicode_READ(text.kind, text.data, <Py_ssize_t>i)
        point = letters.pages[point >> 8].lower[point & 255]
        kinds[i] = letters.pages[point >> 8].kind[point & 255]
        scratch.places[i] = at
        at += write_utf8(point, scratch.bytes + at)
    kinds[size] = SPACE  # which ends every run below
    scratch.places[size] = at
    scratch.size = at
    if scratch.whole:
        for i in range(size):
            scratch.signs[i] = scratch.bytes[scratch.places[i]]
            if scratch.signs[i] & 0x80:
                scratch.signs[i] = 0x80 | kinds[i]
        signs = Signs(scratch.signs, size, &letters.parts[0], scratch.whole, 0)
    i = 0
    while i < size and tokens.truncated != 2:
        kind = kinds[i]
        j = i + 1
        if scratch.peers_words:
            if kind == WORD or kind == CJK:
                while kinds[j] == WORD or kinds[j] == CJK:
                    j += 1
                if j - i >= 2 and add_points(scratch, tokens, i, j) != 0:
                    return -1
        elif kind == WORD:
            while kinds[j] == WORD or kinds[j] == MARK or kinds[j] == JOINER:
                j += 1
            if scratch.whole:
                j = whole_end(&signs, i, j)
            if add_points(scratch, tokens, i, j) != 0:
                return -1
        elif kind == CJK:
            group = size
            j = i
            while kinds[j] == CJK:
                at = j
                j += 1
                while kinds[j] == MARK:
                    j += 1
                if group != size and add_points(scratch, tokens, group, j) != 0:
                    return -1
                if add_points(scratch, tokens, at, j) != 0:
                    return -1
                group = at
        elif kind != SPACE:
            if kind == MARK:
                while kinds[j] == MARK:
                    j += 1
            elif kind == REGION and kinds[j] == REGION:
                j += 1
            elif kind != JOINER:
                j = after_symbol(kinds, j, size)
            if add_points(scratch, tokens, i, j) != 0:
                return -1
        i = j
    tokens.truncated = tokens.truncated != 0
    return 0


cdef inline uint64_t after_symbol(const uint8_t* kinds, uint64_t j, uint64_t size) noexcept nogil:
    """Return where a symbol ends, with its tones and marks and the symbols joined to it."""
    while kinds[j] == TONE or kinds[j] == MARK:
        j += 1
    while (
        kinds[j] == JOINER
        and j + 1 < size
        and (kinds[j + 1] == OTHER or kinds[j + 1] == REGION or kinds[j + 1] == TONE)
    ):
        j += 2
        while kinds[j] == TONE or kinds[j] == MARK:
            j += 1
    return j


cdef inline int add_points(Scratch* scratch, Tokens* tokens, uint64_t first, uint64_t last) noexcept nogil:
    """Add the token of some code points, cut at its limit; `truncated` becomes 2 at the limit of tokens."""
    if tokens.n == scratch.message_tokens_max:
        tokens.truncated = 2
        return 0
    if last - first > scratch.token_length_max:
        last = first + scratch.token_length_max
        tokens.truncated = 1
    return add_token(tokens, scratch.places[first], scratch.places[last] - scratch.places[first])


cdef inline uint64_t write_utf8(uint32_t point, uint8_t* out) noexcept nogil:
    """Write a code point; return its size in bytes."""
    if point < 0x80:
        out[0] = point
        return 1
    if point < 0x800:
        out[0] = 0xC0 | (point >> 6)
        out[1] = 0x80 | (point & 0x3F)
        return 2
    if point < 0x10000:
        out[0] = 0xE0 | (point >> 12)
        out[1] = 0x80 | ((point >> 6) & 0x3F)
        out[2] = 0x80 | (point & 0x3F)
        return 3
    out[0] = 0xF0 | (point >> 18)
    out[1] = 0x80 | ((point >> 12) & 0x3F)
    out[2] = 0x80 | ((point >> 6) & 0x3F)
    out[3] = 0x80 | (point & 0x3F)
    return 4
