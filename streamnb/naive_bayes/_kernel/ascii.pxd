# Twin of: streamnb.naive_bayes.features.alphabet
#
# Classifies ASCII characters eight at a time, one in each byte of a 64-bit integer, and puts them into lower case.
# A loop over single characters mispredicts a branch at the end of every token. Here a text becomes bitmaps of
# 64 characters, and a token lies between two set bits. A test compares every ASCII character with the alphabet.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define snb_trailing_zeros(word) ((unsigned long long)__builtin_ctzll(word))
    """
    uint64_t snb_trailing_zeros(uint64_t word) noexcept nogil  # the integer is not 0

cdef enum:
    EACH = 0x0101010101010101  # times a byte: that byte eight times


cdef struct Characters:  # 64 of them, one bit each
    uint64_t word  # belongs to a word
    uint64_t space


cdef inline uint64_t eight(const uint8_t* data, uint64_t i, uint64_t size) noexcept nogil:
    """Return the eight characters from index `i` on; past the end zeros, and no memory is read there."""
    cdef uint64_t letters = 0
    if i + 8 <= size:
        memcpy(&letters, data + i, 8)
    elif size >= 8:
        memcpy(&letters, data + size - 8, 8)
        letters >>= 8 * (i + 8 - size)
    else:
        while size > i:
            size -= 1
            letters = letters << 8 | data[size]
    return letters


cdef inline uint64_t within(uint64_t letters, uint64_t first, uint64_t last) noexcept nogil:
    """Return the top bit of each byte that lies between two characters, both included."""
    return (
        (letters + (128 - first) * <uint64_t>EACH) & ~(letters + (127 - last) * <uint64_t>EACH)
    ) & (128 * <uint64_t>EACH)


cdef inline uint64_t gathered(uint64_t tops) noexcept nogil:
    """Return the top bits of eight bytes as the low eight bits of an integer."""
    return ((tops >> 7) * <uint64_t>0x0102040810204080) >> 56


cdef inline Characters read_characters(const uint8_t* data, uint64_t begin, uint64_t size, uint8_t* low) noexcept nogil:
    """Classify the 64 characters from `begin` on; write their lower case to `low`, up to 7 bytes past the end."""
    cdef Characters found = Characters(0, 0)
    cdef uint64_t i, at = 0, letters, word, space
    cdef uint64_t end = begin + 64 if size - begin > 64 else size
    for i in range(begin, end, 8):
        letters = eight(data, i, size)
        letters |= within(letters, 65, 90) >> 2  # A to Z
        memcpy(low + i, &letters, 8)
        word = within(letters, 97, 122) | within(letters, 48, 57) | within(letters, 95, 95)  # a to z, 0 to 9, _
        space = within(letters, 9, 13) | within(letters, 28, 32)
        found.word |= gathered(word) << at
        found.space |= gathered(space) << at
        at += 8
    return found
