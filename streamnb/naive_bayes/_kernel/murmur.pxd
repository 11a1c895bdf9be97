# Twin of: nothing; the plain modules use `mmh3`
#
# MurmurHash3 x64 128 with seed 0 (Austin Appleby, public domain), as `mmh3.hash128` computes it. Digests are
# sums of it, and eviction orders equally rare tokens by it.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy


cdef struct Hash128:
    uint64_t low
    uint64_t high


cdef inline uint64_t rotate(uint64_t x, int r) noexcept nogil:
    return (x << r) | (x >> (64 - r))


cdef inline uint64_t scramble(uint64_t k) noexcept nogil:
    k ^= k >> 33
    k *= <uint64_t>0xFF51AFD7ED558CCD
    k ^= k >> 33
    k *= <uint64_t>0xC4CEB9FE1A85EC53
    return k ^ (k >> 33)


cdef inline Hash128 murmur(const uint8_t* data, uint64_t size) noexcept nogil:
    cdef uint64_t c1 = <uint64_t>0x87C37B91114253D5
    cdef uint64_t c2 = <uint64_t>0x4CF5AD432745937F
    cdef uint64_t h1 = 0, h2 = 0, k1, k2, left = size
    cdef Hash128 found
    while left >= 16:
        memcpy(&k1, data, 8)
        memcpy(&k2, data + 8, 8)
        h1 = (rotate(h1 ^ (rotate(k1 * c1, 31) * c2), 27) + h2) * 5 + <uint64_t>0x52DCE729
        h2 = (rotate(h2 ^ (rotate(k2 * c2, 33) * c1), 31) + h1) * 5 + <uint64_t>0x38495AB5
        data += 16
        left -= 16
    k1 = k2 = 0
    memcpy(&k1, data, left if left < 8 else 8)
    if left > 8:
        memcpy(&k2, data + 8, left - 8)
    h1 ^= rotate(k1 * c1, 31) * c2
    h2 ^= rotate(k2 * c2, 33) * c1
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    h1 = scramble(h1)
    h2 = scramble(h2)
    h1 += h2
    found.low = h1
    found.high = h2 + h1
    return found
