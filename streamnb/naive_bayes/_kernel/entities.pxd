# Twin of: streamnb.naive_bayes.features.entities
#
# `WholeReader`: URLs, mail addresses and numbers that are one token. A sign is a byte: an ASCII character, or
# 128 plus the kind of any other code point. `tokenizer.pyx` asks the plain module once what each sign may be.

from libc.stdint cimport uint8_t, uint64_t

cdef enum:  # the entities that are one token
    NUMBERS = 1
    URLS = 2
    MAIL = 4

cdef enum:  # the parts that a sign may have in an entity
    BEGINS_WORD = 1
    LETTER = 2
    URL_MARK = 4
    NAME_MARK = 8
    HOST_MARK = 16
    DIGIT = 32
    SLASH = 64


cdef struct Signs:
    const uint8_t* items
    uint64_t size
    const uint8_t* parts  # by sign
    int whole
    uint64_t no_mail_before


cdef inline uint64_t whole_end(Signs* signs, uint64_t start, uint64_t word_end) noexcept nogil:
    """The twin of `WholeReader.end`."""
    cdef uint64_t end = word_end
    if signs.whole & URLS:
        end = url_end(signs, start, word_end)
    if end == word_end and signs.whole & MAIL and start >= signs.no_mail_before:
        end = mail_end(signs, word_end)
    if end == word_end and signs.whole & NUMBERS:
        while (
            end + 1 < signs.size
            and (signs.items[end] == c"." or signs.items[end] == c",")
            and signs.parts[signs.items[end - 1]] & DIGIT
            and signs.parts[signs.items[end + 1]] & DIGIT
        ):
            end = run_of(signs, end + 1, LETTER)
    return end


cdef inline uint64_t url_end(const Signs* signs, uint64_t start, uint64_t word_end) noexcept nogil:
    cdef const uint8_t* word = signs.items + start
    cdef const uint8_t* then = signs.items + word_end
    cdef uint64_t left = signs.size - word_end
    cdef uint64_t host
    if left > 2 and then[0] == c":" and then[1] == c"/" and then[2] == c"/":
        host = word_end + 3
    elif (
        left > 0
        and then[0] == c"."
        and word_end - start == 3
        and (word[0] | 32) == c"w"  # an ASCII "w" of either case; no other sign gives this byte
        and (word[1] | 32) == c"w"
        and (word[2] | 32) == c"w"
    ):
        host = word_end + 1
    else:
        return word_end
    if not begins_word(signs, host):
        return word_end
    return last_of(signs, run_of(signs, host, LETTER | URL_MARK), LETTER | SLASH)


cdef inline uint64_t mail_end(Signs* signs, uint64_t word_end) noexcept nogil:
    cdef uint64_t at = run_of(signs, word_end, LETTER | NAME_MARK)
    cdef uint64_t i, end
    signs.no_mail_before = at
    if at == signs.size or signs.items[at] != c"@" or not begins_word(signs, at + 1):
        return word_end
    end = last_of(signs, run_of(signs, at + 1, LETTER | HOST_MARK), LETTER)
    for i in range(at + 1, end):
        if signs.items[i] == c".":
            return end
    return word_end


cdef inline bint begins_word(const Signs* signs, uint64_t i) noexcept nogil:
    return i < signs.size and signs.parts[signs.items[i]] & BEGINS_WORD


cdef inline uint64_t run_of(const Signs* signs, uint64_t i, int parts) noexcept nogil:
    """Return where the run of signs from i on that may have one of these parts ends."""
    while i < signs.size and signs.parts[signs.items[i]] & parts:
        i += 1
    return i


cdef inline uint64_t last_of(const Signs* signs, uint64_t end, int parts) noexcept nogil:
    """Return `end` without trailing signs that may have none of these parts; some sign before it may have one."""
    while not signs.parts[signs.items[end - 1]] & parts:
        end -= 1
    return end
