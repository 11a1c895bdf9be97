# Twin of: nothing; orjson decodes the strings of the plain path
#
# The inside of JSON strings: runs without a special character, and escapes. Escapes are read no further than the
# zero byte behind every bytes object, because it is part of none.

from libc.stdint cimport uint8_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #define SNB_RUN 16
    static inline int snb_run(const uint8_t *at, uint8_t *to, int *not_ascii) {
        const __m128i run = _mm_loadu_si128((const __m128i *) at);
        const __m128i quotes = _mm_cmpeq_epi8(run, _mm_set1_epi8(34));
        const __m128i backslashes = _mm_cmpeq_epi8(run, _mm_set1_epi8(92));
        const __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(run, _mm_set1_epi8(31)), run);
        const int stops = _mm_movemask_epi8(_mm_or_si128(controls, _mm_or_si128(quotes, backslashes)));
        const int n = stops ? __builtin_ctz(stops) : SNB_RUN;
        _mm_storeu_si128((__m128i *) to, run);
        *not_ascii |= _mm_movemask_epi8(run) & ((1 << n) - 1);
        return n;
    }
    #else
    #define SNB_RUN 8
    #define SNB_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
    /* the high bit of each byte below a bound; a wrong bit is possible only above a right one */
    #define SNB_BELOW(run, bound) (((run) - SNB_EACH(bound)) & ~(run) & SNB_EACH(128))
    static inline int snb_run(const uint8_t *at, uint8_t *to, int *not_ascii) {
        uint64_t run, stops;
        memcpy(&run, at, 8);
        memcpy(to, &run, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        run = __builtin_bswap64(run);
    #endif
        stops = SNB_BELOW(run, 32) | SNB_BELOW(run ^ SNB_EACH(34), 1) | SNB_BELOW(run ^ SNB_EACH(92), 1);
        *not_ascii |= (run & SNB_EACH(128) & (stops ? (stops & -stops) - 1 : UINT64_MAX)) != 0;
        return stops ? __builtin_ctzll(stops) >> 3 : SNB_RUN;
    }
    #endif
    """
    const int RUN "SNB_RUN"
    # Copies the next `RUN` bytes of a string, and returns how many of them come before the first quote, backslash or
    # control character. It sets `not_ascii` if one of those is not ASCII.
    int snb_run(const uint8_t* at, uint8_t* to, int* not_ascii) noexcept nogil


cdef inline uint8_t of_one_letter(uint8_t letter) noexcept nogil:
    """Return the character of an escape of one letter, or 0 if there is none."""
    if letter == c"n":
        return c"\n"
    if letter == c'"' or letter == c"\\" or letter == c"/":
        return letter
    if letter == c"r":
        return c"\r"
    if letter == c"t":
        return c"\t"
    if letter == c"b":
        return c"\b"
    if letter == c"f":
        return c"\f"
    return 0


cdef inline int hex4(const uint8_t* at) noexcept nogil:
    """Return the number of four hexadecimal digits, or -1."""
    cdef int number = 0, i, digit
    for i in range(4):
        if c"0" <= at[i] <= c"9":
            digit = at[i] - c"0"
        elif c"a" <= (at[i] | 0x20) <= c"f":
            digit = (at[i] | 0x20) - c"a" + 10
        else:
            return -1
        number = number << 4 | digit
    return number


cdef inline uint8_t* utf8(int code, uint8_t* to) noexcept nogil:
    """Write a code point as UTF-8, and return its end."""
    if code < 0x80:
        to[0] = code
        return to + 1
    if code < 0x800:
        to[0] = 0xC0 | code >> 6
        to[1] = 0x80 | code & 0x3F
        return to + 2
    if code < 0x10000:
        to[0] = 0xE0 | code >> 12
        to[1] = 0x80 | code >> 6 & 0x3F
        to[2] = 0x80 | code & 0x3F
        return to + 3
    to[0] = 0xF0 | code >> 18
    to[1] = 0x80 | code >> 12 & 0x3F
    to[2] = 0x80 | code >> 6 & 0x3F
    to[3] = 0x80 | code & 0x3F
    return to + 4


cdef inline const uint8_t* escape(const uint8_t* at, uint8_t** to) noexcept nogil:
    """Write the character of the escape whose backslash is at `at`; return its end, or NULL if it is none.

    The character is shorter than the escape. Half of a surrogate pair is no escape.
    """
    cdef int code, low
    cdef uint8_t character = of_one_letter(at[1])
    if character:
        to[0][0] = character
        to[0] += 1
        return at + 2
    if at[1] != c"u":
        return NULL
    code = hex4(at + 2)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return NULL
    at += 6
    if 0xD800 <= code < 0xDC00:
        if at[0] != c"\\" or at[1] != c"u":
            return NULL
        low = hex4(at + 2)
        if not 0xDC00 <= low < 0xE000:
            return NULL
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        at += 6
    to[0] = utf8(code, to[0])
    return at
