# Twin of: streamnb.naive_bayes.features.tokenizer, streamnb.naive_bayes.features.stop_words
#
# TokenFilter short tokens and stop words: the last lines of `Tokenizer.split`.

from libc.stdint cimport uint64_t, uint8_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy

from streamnb.naive_bayes._kernel.table cimport hash_bytes, same
from streamnb.naive_bayes._kernel.tokenizer cimport SLACK, Scratch, Token, Tokens


cdef struct TokenFilter:
    uint64_t length_min  # code points
    uint8_t* bytes  # the stop words, end to end
    Token* slots  # by hash; a size of 0 is an empty slot
    uint64_t mask


cdef inline int load_filter(TokenFilter* filter, tokenizer, words) except -1:
    """Load a tokenizer's shortest length and its stop words; the owner of `filter` frees `bytes` and `slots`."""
    cdef uint64_t slots = 8, at = 0, slot
    cdef bytes word
    filter.length_min = tokenizer.token_length_min
    if not words:
        return 0
    encoded = [each.encode() for each in words if each]
    while slots < 4 * <uint64_t>len(encoded):
        slots *= 2
    filter.bytes = <uint8_t*>calloc(sum(map(len, encoded)) + <uint64_t>SLACK, 1)
    filter.slots = <Token*>calloc(slots, sizeof(Token))
    if filter.bytes == NULL or filter.slots == NULL:
        raise MemoryError("no memory for stop words")
    filter.mask = slots - 1
    for word in encoded:
        memcpy(filter.bytes + at, <const uint8_t*>word, len(word))
        slot = hash_bytes(filter.bytes + at, len(word), 0) & filter.mask
        while filter.slots[slot].size:
            slot = (slot + 1) & filter.mask
        filter.slots[slot].start, filter.slots[slot].size = at, len(word)
        at += len(word)
    return 0


cdef inline void apply_filter(const TokenFilter* filter, const Scratch* scratch, Tokens* tokens) noexcept nogil:
    """Keep the tokens that are long enough and are not stop words."""
    cdef uint64_t i, kept = 0
    cdef Token token
    for i in range(tokens.n):
        token = tokens.items[i]
        if is_shorter(scratch.bytes + token.start, token.size, filter.length_min):
            continue
        if filter.slots != NULL and is_stop_word(filter, scratch.bytes + token.start, token.size):
            continue
        tokens.items[kept] = token
        kept += 1
    tokens.n = kept


cdef inline bint is_shorter(const uint8_t* token, uint64_t size, uint64_t length) noexcept nogil:
    """Return whether a token has fewer code points than `length`, reading no more bytes than that takes."""
    cdef uint64_t i = 0
    while i < size and length:
        length -= (token[i] & 0xC0) != 0x80
        i += 1
    return length > 0


cdef inline bint is_stop_word(const TokenFilter* filter, const uint8_t* token, uint64_t size) noexcept nogil:
    cdef uint64_t slot = hash_bytes(token, size, 0) & filter.mask
    while filter.slots[slot].size:
        if filter.slots[slot].size == size and same(filter.bytes + filter.slots[slot].start, token, size):
            return True
        slot = (slot + 1) & filter.mask
    return False
