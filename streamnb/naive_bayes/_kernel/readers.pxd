# Twin of: streamnb.naive_bayes.features.readers, streamnb.naive_bayes.event_models.multinomial
#
# The features that the views read in a message, and `Multinomial.features`, which gives each its weight.

from libc.math cimport log, rint
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy  # where there is no slack

from streamnb.naive_bayes._kernel.absent_words cimport Histogram
from streamnb.naive_bayes._kernel.gaussian cimport Normals
from streamnb.naive_bayes._kernel.table cimport copy_bytes, hash_bytes, same, snb_prefetch
from streamnb.naive_bayes._kernel.tokenizer cimport SLACK, Scratch, Text, Token, Tokens, allocate, grow

cdef enum:
    # GIVEN: terms, which arrive with their counts; after it the blocks of named values, which arrive so too
    WORDS, PAIRS, CHARACTERS, ENDS, SHAPES, STRINGS, GIVEN, BLOCK_CATEGORIES, BLOCK_FLAGS, BLOCK_NUMBERS

cdef enum:
    BY_COUNTS, BY_BOOLEAN, BY_LOG

cdef enum:
    LOG_WEIGHT_OF_ONE = 177  # 256 ln 2, rounded: what a token that occurs once counts; `step.pyx` compares it

cdef enum:
    LOGS_BITS = 10  # logarithms that a model caches: 16 KiB fit into the processor's first cache

cdef enum:
    STAMP = 4294967296  # the step between stamps: the most features that a message has in a view


cdef struct Part:  # one text of a view of text
    uint64_t group  # the text
    uint8_t* prefix  # that its tokens begin with
    uint64_t prefix_size


cdef struct Log:
    double of
    double log


cdef struct View:
    int reader
    uint64_t n  # of character n-grams, of tokens at each end, and the order of strings
    uint64_t characters_max  # of strings: bytes
    Part* parts
    uint64_t n_parts
    uint64_t group  # the given tokens that it reads
    uint64_t store  # the view of the store that it counts in
    int weight
    bint skips_unknown
    int smoothing
    double pseudo  # alpha or mu
    Normals normals  # of numbers
    Log* logs  # a cache of log(count + alpha) for all views; see multinomial.pxd
    bint is_bernoulli  # then `pseudo` is the pseudo-messages with a word, and
    double without  # those without it
    double half  # the spare half of the unknown word in a Dirichlet's background
    double[4] as_set  # these three and the normals' pseudo-observations, unscaled; see `Driver._grow_older`
    bint fades  # the model forgets, so counts are not multiples of 1/256
    Histogram* histograms  # of each class, while a batch runs


cdef struct Feature:
    uint64_t start  # in the scratch
    uint64_t size
    uint64_t hash
    int64_t row  # -1 if no class has taught it
    double f
    double gradient  # of the message's log loss in its trust, while the message is learned


cdef struct Link:  # from a string to those without a byte at one end, by their indices
    uint32_t head  # without the last byte
    uint32_t tail  # without the first byte


cdef struct Features:
    Feature* items
    uint64_t capacity
    uint64_t* ends  # where each view's features begin, and where the last view's end
    uint64_t* seen  # by hash: a stamp of message and view, plus the feature's index
    uint64_t seen_mask
    uint64_t stamp
    uint64_t seed
    const uint32_t* slots  # in which they will be looked up
    uint64_t slots_mask
    uint64_t* longest  # where the longest strings of each view of strings end
    Link* links  # of each string
    uint64_t links_capacity
    uint32_t* kept  # the feature of each occurrence of a string in the text that was read last
    uint64_t kept_capacity


cdef struct Given:  # tokens that arrived with their counts, end to end
    uint8_t* bytes
    uint64_t size
    uint64_t bytes_capacity
    uint64_t* ends
    uint64_t ends_capacity
    double* counts  # or the numbers of a block of numbers
    uint64_t counts_capacity
    void** of  # the statistics of each name in a block, or NULL; see values.pyx
    uint64_t of_capacity
    uint64_t n


cdef inline int give(Given* given, const void* token, uint64_t size, double count) noexcept nogil:
    """Append one token, which the caller writes later if it is NULL; return -1 without memory."""
    if (
        grow(<void**>&given.bytes, &given.bytes_capacity, given.size + size + SLACK, 1) != 0
        or grow(<void**>&given.ends, &given.ends_capacity, given.n + 1, sizeof(uint64_t)) != 0
        or grow(<void**>&given.counts, &given.counts_capacity, given.n + 1, sizeof(double)) != 0
    ):
        return -1
    if token != NULL:
        memcpy(given.bytes + given.size, token, size)
    given.size += size
    given.ends[given.n] = given.size
    given.counts[given.n] = count
    given.n += 1
    return 0


cdef inline int read_view(
    Features* features, Scratch* scratch, const View* view, const Part* part, const Tokens* tokens, uint64_t* n
) noexcept nogil:
    """Append the features of one text of a view from index `n` on, each as often as it occurs."""
    cdef uint64_t i, start, size, edge
    cdef const Token* token
    if view.reader == WORDS:
        for i in range(tokens.n):
            token = tokens.items + i
            if add_feature(features, scratch, part, token.start, token.size, n) != 0:
                return -1
    elif view.reader == PAIRS:
        for i in range(1, tokens.n):
            token = tokens.items + i
            size = tokens.items[i - 1].size
            start = allocate(scratch, size + 1 + token.size)
            if start == <uint64_t>-1:
                return -1
            copy_bytes(scratch.bytes + start, scratch.bytes + tokens.items[i - 1].start, size)
            scratch.bytes[start + size] = c" "
            copy_bytes(scratch.bytes + start + size + 1, scratch.bytes + token.start, token.size)
            if add_feature(features, scratch, part, start, size + 1 + token.size, n) != 0:
                return -1
    elif view.reader == CHARACTERS:
        for i in range(tokens.n):
            if read_runs(features, scratch, view, part, tokens.items + i, n) != 0:
                return -1
    else:
        edge = view.n if view.n < tokens.n else tokens.n
        for i in range(2 * edge):
            token = tokens.items + (i if i < edge else tokens.n - edge + (i - edge))
            start = allocate(scratch, token.size + 1)
            if start == <uint64_t>-1:
                return -1
            scratch.bytes[start] = c"h" if i < edge else c"t"
            copy_bytes(scratch.bytes + start + 1, scratch.bytes + token.start, token.size)
            if add_feature(features, scratch, part, start, token.size + 1, n) != 0:
                return -1
    return 0


cdef inline int read_runs(
    Features* features, Scratch* scratch, const View* view, const Part* part, const Token* token, uint64_t* n
) noexcept nogil:
    """Append the runs of `view.n` code points of a token with a space on both sides; all of it if it is shorter."""
    cdef uint64_t size = token.size + 2
    cdef uint64_t start = allocate(scratch, size)
    cdef uint64_t begin = 0, end = 0, characters = 0
    cdef uint8_t* padded
    if start == <uint64_t>-1:
        return -1
    padded = scratch.bytes + start
    padded[0] = c" "
    copy_bytes(padded + 1, scratch.bytes + token.start, token.size)
    padded[size - 1] = c" "
    while end < size and characters < view.n:  # to the end of the first run
        end = after_character(padded, end, size)
        characters += 1
    while True:
        if add_feature(features, scratch, part, start + begin, end - begin, n) != 0:
            return -1
        if end >= size:
            return 0
        padded = scratch.bytes + start
        begin = after_character(padded, begin, size)
        end = after_character(padded, end, size)


cdef inline uint64_t after_character(const uint8_t* text, uint64_t at, uint64_t size) noexcept nogil:
    at += 1
    while at < size and (text[at] & 0xC0) == 0x80:
        at += 1
    return at


cdef inline int take_given(
    Features* features, Scratch* scratch, const View* view, const Given* given, uint64_t begin, uint64_t end, uint64_t* n
) noexcept nogil:
    """Append the features from `begin` to `end` of a batch's given tokens, which are all different."""
    cdef uint64_t i, start, size, source
    cdef Feature* feature
    if grow(<void**>&features.items, &features.capacity, n[0] + end - begin, sizeof(Feature)) != 0:
        return -1
    for i in range(begin, end):
        source = given.ends[i - 1] if i else 0
        size = given.ends[i] - source
        start = allocate(scratch, size)
        if start == <uint64_t>-1:
            return -1
        copy_bytes(scratch.bytes + start, given.bytes + source, size)
        feature = features.items + n[0]
        feature.start = start
        feature.size = size
        feature.hash = hash_bytes(scratch.bytes + start, size, features.seed + view.store)
        snb_prefetch(features.slots + (feature.hash & features.slots_mask))
        feature.f = given.counts[i]
        n[0] += 1
    return 0


cdef inline void weigh(Features* features, const View* view, uint64_t first, uint64_t last) noexcept nogil:
    """Give each feature its weight, from how often it occurs in the message."""
    cdef uint64_t i
    cdef Feature* feature
    if view.weight == BY_COUNTS:
        return
    for i in range(first, last):
        feature = features.items + i
        if view.weight == BY_BOOLEAN:
            feature.f = 1.0
        elif feature.f == 1.0:
            feature.f = LOG_WEIGHT_OF_ONE / 256.0
        else:
            feature.f = rint(256.0 * log(1.0 + feature.f)) / 256.0


cdef inline int add_feature(
    Features* features, Scratch* scratch, const Part* part, uint64_t start, uint64_t size, uint64_t* n
) noexcept nogil:
    """Append one feature, with its text's prefix."""
    cdef uint64_t whole
    if part.prefix_size:
        whole = allocate(scratch, part.prefix_size + size)
        if whole == <uint64_t>-1:
            return -1
        memcpy(scratch.bytes + whole, part.prefix, part.prefix_size)
        copy_bytes(scratch.bytes + whole + part.prefix_size, scratch.bytes + start, size)
        start = whole
        size += part.prefix_size
    if n[0] == features.capacity:
        if grow(<void**>&features.items, &features.capacity, n[0] + 1, sizeof(Feature)) != 0:
            return -1
    features.items[n[0]].start = start
    features.items[n[0]].size = size
    n[0] += 1
    return 0


cdef inline int count_features(
    Features* features, const Scratch* scratch, uint64_t store, uint64_t first, uint64_t* n, uint32_t* places
) noexcept nogil:
    """Merge equal features of a view, which begin at index `first`, and count them.

    The index that each of them has afterwards is written to `places`, unless that is NULL.

    Reading all, then hashing all, then comparing all lets the processor overlap each step for many features: one
    at a time, a hash would wait for the bytes just written, and a comparison for the hash.
    """
    cdef uint64_t i, at, last = n[0], kept = first
    cdef Feature* feature
    cdef Feature* other
    if make_seen(features, last - first) != 0:
        return -1
    for i in range(first, last):
        feature = features.items + i
        feature.hash = hash_bytes(scratch.bytes + feature.start, feature.size, features.seed + store)
        snb_prefetch(features.slots + (feature.hash & features.slots_mask))
    for i in range(first, last):
        feature = features.items + i
        at = feature.hash & features.seen_mask
        other = NULL
        while features.seen[at] >= features.stamp:  # stamps only grow, and this is the latest
            other = features.items + (features.seen[at] - features.stamp)
            if (
                other.hash == feature.hash
                and other.size == feature.size
                and same(scratch.bytes + other.start, scratch.bytes + feature.start, feature.size)
            ):
                other.f += 1.0
                if places != NULL:
                    places[i - first] = <uint32_t>(features.seen[at] - features.stamp)
                break
            other = NULL
            at = (at + 1) & features.seen_mask
        if other == NULL:
            features.seen[at] = features.stamp + kept
            if places != NULL:
                places[i - first] = <uint32_t>kept
            other = features.items + kept
            other.start, other.size, other.hash, other.f = feature.start, feature.size, feature.hash, 1.0
            kept += 1
    n[0] = kept
    return 0


cdef inline int make_seen(Features* features, uint64_t n) noexcept nogil:
    """Make room to tell n features apart; return -1 without memory."""
    cdef uint64_t size = features.seen_mask + 1
    cdef uint64_t* seen
    if n * 2 <= size:
        return 0
    while size < n * 2:
        size *= 4
    seen = <uint64_t*>calloc(size, sizeof(uint64_t))
    if seen == NULL:
        return -1
    free(features.seen)
    features.seen = seen
    features.seen_mask = size - 1
    return 0
