# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The compiled twin of `NaiveBayes.step` over views of text: same order, same formulas, same bits.

The plain modules are the specification, and each block here names the function it is the twin of. Texts are
read with the GIL held; then the batch is scored and learned without it, message by message. The state of
record stays in Python (`State`, `CalibratedHead`): small arrays are copied in at the start of a batch and
back at its end. Only the counts live in C.

What a code point is stands in `streamnb.tokens` alone: its pages of 256 are asked for once and kept.
"""

import numpy as np

cimport cython

from streamnb.columns import Scores
from streamnb.event_models import multinomial as formulas
from streamnb import head as head_formulas
from streamnb import tokens
from streamnb.reading import text_of
from streamnb.smoothing import Dirichlet, Laplace, LearnedPrior, NoSmoothing, UniformPrior
from streamnb.tokens import CharacterGrams, Edges, WordPairs, Words, kind_page, lower

from libc.math cimport INFINITY, NAN, exp, fabs, log, pow, rint, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from streamnb._kernel.counts cimport CountStore
from streamnb._kernel.table cimport Table, find, hash_bytes, insert, reserve, same, snb_prefetch, widen

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object) noexcept
    int PyUnicode_KIND(object) noexcept
    void* PyUnicode_DATA(object) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object) noexcept
    uint32_t PyUnicode_READ(int kind, const void* data, Py_ssize_t i) noexcept nogil
    int PyUnicode_CheckExact(object) noexcept

cdef enum:
    LOGS = 65536  # logarithms of count + alpha kept ready: counts below 256 by 1/256, and so many whole ones
    WORDS, PAIRS, CHARACTERS, EDGES
    BY_COUNTS, BY_BOOLEAN, BY_LOG
    SMOOTH_NONE, SMOOTH_LAPLACE, SMOOTH_DIRICHLET
    EMPTY = 1, TRUNCATED = 2, CLASS_LIMIT = 4

cdef double LENGTH_EXPONENT = formulas.LENGTH_EXPONENT
cdef double RARE_TOKENS = formulas.RARE_TOKENS
cdef double SQUARE_LAW_SCALE = formulas.SQUARE_LAW_SCALE
cdef double RARE_SQUARE_LAW_SCALE = formulas.RARE_SQUARE_LAW_SCALE
cdef double FEATURE_RATE = head_formulas.FEATURE_RATE
cdef double OFFSET_RATE = head_formulas.OFFSET_RATE
cdef double ETA_LOW = head_formulas.NOISE_BOUNDS[0]
cdef double ETA_HIGH = head_formulas.NOISE_BOUNDS[1]
cdef double META_CLIP = head_formulas.META_CLIP
cdef double META_PSEUDO_MESSAGES = head_formulas.META_PSEUDO_MESSAGES

cdef uint64_t STAMP = 1 << 32  # a stamp leaves room for so many features

cdef enum:
    PAGES = 4352  # of 256 code points each

cdef uint32_t EXPANDS = 0xFFFFFFFF  # a lower case of several code points


cdef struct Page:
    uint8_t[256] kind
    uint32_t[256] lower


cdef Page* ASCII
cdef Page* pages[PAGES]
memset(pages, 0, sizeof(pages))


cdef Page* load_page(uint32_t number) except NULL:
    """The kinds and lower cases of 256 code points, asked for once."""
    cdef Page* page = <Page*>malloc(sizeof(Page))
    cdef uint32_t i
    if page == NULL:
        raise MemoryError("no memory for a page of Unicode")
    kinds = kind_page(number)
    for i in range(256):
        page.kind[i] = _KINDS.index(kinds[i])
        low = lower(chr(256 * number + i))
        page.lower[i] = ord(low) if len(low) == 1 else EXPANDS
    pages[number] = page
    return page



cdef enum:  # the kinds of `streamnb.tokens`, in this order
    WORD, MARK, CJK, SPACE, JOINER, REGION, TONE, OTHER

_KINDS = [tokens.WORD, tokens.MARK, tokens.CJK, tokens.SPACE, tokens.JOINER, tokens.REGION, tokens.TONE, tokens.OTHER]

cdef uint8_t WORD_ASCII[256]  # the lower case of what belongs to a word, 0 of all else
ASCII = load_page(0)
for _code in range(128):
    WORD_ASCII[_code] = ASCII.lower[_code] if ASCII.kind[_code] == WORD else 0


cdef struct View:
    int reader
    uint64_t n
    uint64_t characters_max
    uint64_t group  # which text it reads
    int weight
    int skips_unknown
    int smoothing
    double pseudo  # alpha or mu
    double* logs  # log(i / 256 + alpha), 0 where it was not asked for yet


cdef struct Token:
    uint64_t start  # in the message's scratch
    uint64_t size


cdef struct Tokens:
    Token* items
    uint64_t n
    uint64_t capacity
    int truncated


cdef struct Feature:
    uint64_t start  # in the message's scratch
    uint64_t size
    uint64_t hash
    int64_t row
    double f


cdef struct Text:
    const void* data
    uint64_t size  # in code points
    int kind  # bytes a code point, 0 for ASCII


cdef struct Normal:  # SteadyNormal
    double* n
    double* s
    double* ss
    double variance_min


cdef struct Out:
    double* posterior
    double* odds
    double* u
    double* raw
    int64_t* numbers  # n_classes, known, unknown, learned, flags


cdef int grow(void** block, uint64_t* capacity, uint64_t needed, uint64_t item) noexcept nogil:
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


@cython.final
cdef class Driver:
    """Drives one model; made once, as its settings never change.

    Parameters
    ----------
    model : State
        Whose views all read text, and whose counts are a compiled store.
    """

    cdef View* views
    cdef uint64_t n_views
    cdef uint64_t n_groups
    cdef uint64_t n_features  # of the head
    cdef int calibrated, raw, peers_words, uniform
    cdef double prior_smoothing
    cdef uint64_t token_length_max, message_tokens_max
    cdef tuple groups
    cdef object tokenizer
    # scratch, kept between batches
    cdef uint8_t* scratch
    cdef uint64_t scratch_size, scratch_capacity
    cdef uint8_t* kinds  # of a text's code points, in lower case
    cdef uint64_t kinds_capacity
    cdef uint64_t* places  # where each begins in the scratch
    cdef uint64_t places_capacity
    cdef Tokens* tokens  # by group, then those of the texts' first characters
    cdef Feature* features
    cdef uint64_t features_capacity
    cdef uint64_t* ends  # of each view's features
    cdef uint64_t* seen  # by hash: the message and view that wrote there last, and the feature's number
    cdef uint64_t seen_mask
    cdef uint64_t stamp
    # the state while a batch runs
    cdef uint64_t capacity  # classes there is room for
    cdef double* block
    cdef double* weights
    cdef double* squares
    cdef double* offsets
    cdef double* offset_squares
    cdef double* class_counts
    cdef Normal length, unknown_share
    cdef double eta, eta_squares
    cdef int64_t learned
    cdef double* phi
    cdef double* d
    cdef double* base
    cdef double* s
    cdef double* u
    cdef double* p
    cdef double* r
    cdef int64_t* active
    cdef uint64_t n_active
    cdef uint64_t n_classes
    cdef uint64_t seed

    def __cinit__(self, model):
        cdef uint64_t i
        cdef Table* table = &(<CountStore>model.counts).table
        self.n_views = len(model.views)
        self.views = <View*>calloc(self.n_views, sizeof(View))
        self.groups = tuple(dict.fromkeys(view.reader.fields for view in model.views))
        self.n_groups = len(self.groups)
        self.tokens = <Tokens*>calloc(2 * self.n_groups, sizeof(Tokens))
        self.ends = <uint64_t*>calloc(self.n_views + 1, sizeof(uint64_t))
        self.seen_mask = 1023
        self.seen = <uint64_t*>calloc(1024, sizeof(uint64_t))
        if not (self.views and self.tokens and self.ends and self.seen) or table.slots == NULL:
            raise MemoryError("no memory for a driver")
        for i, view in enumerate(model.views):
            reader, event = view.reader, view.event_model
            self.views[i].group = self.groups.index(reader.fields)
            if isinstance(reader, Words):
                self.views[i].reader = WORDS
            elif isinstance(reader, WordPairs):
                self.views[i].reader = PAIRS
            elif isinstance(reader, CharacterGrams):
                self.views[i].reader = CHARACTERS
                self.views[i].n = reader.n
                self.views[i].characters_max = reader.characters_max
            else:
                self.views[i].reader = EDGES
                self.views[i].n = reader.n
            self.views[i].weight = {"counts": BY_COUNTS, "boolean": BY_BOOLEAN, "log": BY_LOG}[event.weight]
            self.views[i].skips_unknown = event.unknown == "skip"
            if isinstance(event.smoothing, Laplace):
                self.views[i].smoothing = SMOOTH_LAPLACE
                self.views[i].pseudo = event.smoothing.alpha
                self.views[i].logs = <double*>calloc(2 * LOGS, sizeof(double))
                if self.views[i].logs == NULL:
                    raise MemoryError("no memory for a driver")
            elif isinstance(event.smoothing, Dirichlet):
                self.views[i].smoothing = SMOOTH_DIRICHLET
                self.views[i].pseudo = event.smoothing.mu
            else:
                self.views[i].smoothing = SMOOTH_NONE
        self.calibrated = model.head is not None
        self.n_features = 4 * self.n_views + 2
        self.raw = model.raw
        self.uniform = isinstance(model.prior, UniformPrior)
        self.prior_smoothing = 0.0 if self.uniform else model.prior.smoothing
        self.tokenizer = model.tokenizer
        self.peers_words = self.tokenizer.rule == "words"
        self.token_length_max = self.tokenizer.token_length_max
        self.message_tokens_max = self.tokenizer.message_tokens_max

    def __dealloc__(self):
        cdef uint64_t i
        if self.views != NULL:
            for i in range(self.n_views):
                free(self.views[i].logs)
        if self.tokens != NULL:
            for i in range(2 * self.n_groups):
                free(self.tokens[i].items)
        free(self.views)
        free(self.tokens)
        free(self.ends)
        free(self.seen)
        free(self.scratch)
        free(self.kinds)
        free(self.places)
        free(self.features)
        free(self.block)
        free(self.active)

    # ---- the batch

    def step(self, model, batch, bint score, bint learn):
        """The twin of `NaiveBayes.step`.

        Returns
        -------
        Scores

        Raises
        ------
        ValueError
            A field, label or weight cannot be used; nothing of the batch was learned.
        MemoryError
            There is no memory for a message; those before it are learned.
        """
        cdef uint64_t n = len(batch)
        cdef uint64_t i, g, width
        cdef list alive = []  # what the C side points into
        texts_array = np.zeros(n * self.n_groups * sizeof(Text), np.uint8)
        cdef uint8_t[::1] texts_view = texts_array
        cdef Text* texts = <Text*>(&texts_view[0] if n else NULL)
        lengths = np.zeros(n, np.float64)
        cdef double[::1] lengths_view = lengths
        classes, indices, weights = self._classes(model, batch, learn)
        self._read(batch.fields, n, texts, lengths_view, alive)
        width = len(classes)
        cdef int64_t[::1] y = indices
        grams = np.ones(n, np.float64) if weights is None else np.array(weights, np.float64)
        cdef double[::1] g_weights = grams
        posterior = np.zeros((n, width), np.float64)
        odds = np.full((n, width), np.nan)
        u = np.full((n, width), np.nan)
        raw = np.full((n, width), np.nan) if self.raw else np.empty((0, 0))
        numbers = np.zeros((n, 5), np.int64)
        cdef double[:, ::1] posterior_view = posterior
        cdef double[:, ::1] odds_view = odds
        cdef double[:, ::1] u_view = u
        cdef double[:, ::1] raw_view = raw
        cdef int64_t[:, ::1] numbers_view = numbers
        cdef Table* table = &(<CountStore>model.counts).table
        cdef Out out
        cdef int failed = 0
        cdef bint wide = width > 0
        self.seed = table.seed
        self._load(model, width)
        with nogil:
            for i in range(n):
                out.numbers = &numbers_view[i, 0]
                out.posterior = &posterior_view[i, 0] if wide else NULL
                out.odds = &odds_view[i, 0] if wide else NULL
                out.u = &u_view[i, 0] if wide else NULL
                out.raw = &raw_view[i, 0] if wide and self.raw else NULL
                failed = self._message(
                    table, texts + i * self.n_groups, lengths_view[i], y[i], g_weights[i], score, &out
                )
                if failed:
                    break
        self._store(model, classes[: self.n_classes])
        if failed:
            raise MemoryError(f"no memory to learn message {i} of the batch; those before it are learned")
        if not score:
            posterior, odds, u = (np.empty((n, width)) for _ in range(3))
            posterior[:], odds[:], u[:] = 0.0, np.nan, np.nan
        return Scores(
            classes=tuple(classes),
            n_classes=numbers[:, 0].copy(),
            posterior=posterior,
            log_odds=odds,
            u=u,
            raw_posterior=raw if self.raw and score else None,
            known_tokens=numbers[:, 1].copy(),
            unknown_tokens=numbers[:, 2].copy(),
            learned=numbers[:, 3].copy(),
            flags=numbers[:, 4].copy(),
        )

    cdef _read(self, fields, uint64_t n, Text* texts, double[::1] lengths, list alive):
        """Point at the batch's texts; the twin of `reading.read`."""
        cdef uint64_t i, g
        cdef Py_ssize_t characters
        cdef bint plain = self.n_groups == 1 and len(self.groups[0]) == 1
        column = fields.get(self.groups[0][0]) if plain else None
        plain = isinstance(column, list) and len(column) >= n
        cdef list texts_of_column = column if plain else []
        for i in range(n):
            if plain and PyUnicode_CheckExact(texts_of_column[i]):
                whole = texts_of_column[i]
                characters = PyUnicode_GET_LENGTH(whole)
                self._point(texts + i, whole, fields, i, 0, alive)
            else:
                total = {}
                for g in range(self.n_groups):
                    whole = text_of(self.groups[g], fields, i, total)
                    self._point(texts + i * self.n_groups + g, whole, fields, i, g, alive)
                characters = sum(total.values())
            lengths[i] = log(1.0 + <double>characters)

    cdef _point(self, Text* text, whole, fields, uint64_t i, uint64_t g, list alive):
        cdef Py_ssize_t j
        cdef uint32_t point
        cdef bint expands = False
        if not PyUnicode_IS_ASCII(whole):
            text.kind = PyUnicode_KIND(whole)
            for j in range(PyUnicode_GET_LENGTH(whole)):
                point = PyUnicode_READ(text.kind, PyUnicode_DATA(whole), j)
                if self._low(point) == EXPANDS:
                    expands = True
                if 0xD800 <= point <= 0xDFFF:
                    text_of(self.groups[g], fields, i, {})  # which refuses it, and says where
            if expands:
                whole = lower(whole)
                text.kind = PyUnicode_KIND(whole)
                for j in range(PyUnicode_GET_LENGTH(whole)):
                    point = PyUnicode_READ(text.kind, PyUnicode_DATA(whole), j)
                    self._low(point)
        alive.append(whole)
        text.data = PyUnicode_DATA(whole)
        text.size = PyUnicode_GET_LENGTH(whole)

    cdef uint32_t _low(self, uint32_t point) except? 0:
        """A code point's lower case, once its page and its lower case's page are there."""
        cdef uint32_t low
        if pages[point >> 8] == NULL:
            load_page(point >> 8)
        low = pages[point >> 8].lower[point & 255]
        if low != EXPANDS and pages[low >> 8] == NULL:
            load_page(low >> 8)
        return low

    cdef tuple _classes(self, model, batch, bint learn):
        """All classes at the end of the batch, each label's index (-1 none, -2 one class too many), weights."""
        cdef Py_ssize_t i, n = len(batch)
        cdef dict index = dict(model.index)
        classes = list(model.classes)
        indices = np.full(n, -1, np.int64)
        cdef int64_t[::1] view = indices
        if not learn:
            return classes, indices, None
        labels, weights = batch.labels, batch.weights
        kind = type(classes[0]) if classes else None
        if weights is None and isinstance(labels, list):
            for i in range(n):
                label = (<list>labels)[i]
                if label is None:
                    continue
                c = index.get(label) if type(label) is kind else None
                if c is None:
                    break
                view[i] = c
            else:
                return classes, indices, None
        labels, weights = model.checked_labels(batch)
        for i in range(n):
            label = labels[i]
            if label is None:
                continue
            c = index.get(label)
            if c is None:
                if len(classes) >= model.classes_max:
                    view[i] = -2
                    continue
                c = index[label] = len(classes)
                classes.append(label)
            view[i] = c
        return classes, indices, weights

    cdef _load(self, model, uint64_t width):
        """The model's small arrays into C, with room for `width` classes."""
        cdef uint64_t c, i
        cdef uint64_t F = self.n_features
        cdef uint64_t size = 2 * F + 9 * width + F * width + 6 * width
        cdef double* at
        if width > self.capacity or self.block == NULL:
            free(self.block)
            free(self.active)
            self.block = <double*>malloc((size + 1) * sizeof(double))
            self.active = <int64_t*>malloc((width + 1) * sizeof(int64_t))
            self.capacity = width
            if self.block == NULL or self.active == NULL:
                raise MemoryError("no memory for the classes of a batch")
        at = self.block
        self.weights = at
        self.squares = at + F
        at += 2 * F
        width = self.capacity
        self.offsets, self.offset_squares, self.class_counts = at, at + width, at + 2 * width
        self.length.n, self.length.s, self.length.ss = at + 3 * width, at + 4 * width, at + 5 * width
        at += 6 * width
        self.unknown_share.n, self.unknown_share.s, self.unknown_share.ss = at, at + width, at + 2 * width
        at += 3 * width
        self.phi = at
        at += F * width
        self.d, self.base, self.s = at, at + width, at + 2 * width
        self.u, self.p, self.r = at + 3 * width, at + 4 * width, at + 5 * width
        self.n_classes = len(model.classes)
        self.learned = model.learned
        for c in range(self.n_classes):
            self.class_counts[c] = model.class_counts[c]
        if not self.calibrated:
            return
        head = model.head
        for i in range(F):
            self.weights[i] = head.weights[i]
            self.squares[i] = head.weight_squares[i]
        for c in range(self.n_classes):
            self.offsets[c] = head.offsets[c]
            self.offset_squares[c] = head.offset_squares[c]
        _load_normal(&self.length, head.length, self.n_classes)
        _load_normal(&self.unknown_share, head.unknown_share, self.n_classes)
        self.eta, self.eta_squares = head.eta, head.eta_squares

    cdef _store(self, model, classes):
        """And back: the classes that appeared, and everything that was learned."""
        cdef uint64_t c, i
        model.adopt(classes)
        for c in range(self.n_classes):
            model.class_counts[c] = self.class_counts[c]
        model.learned = self.learned
        if not self.calibrated:
            return
        head = model.head
        head.weights = [self.weights[i] for i in range(self.n_features)]
        head.weight_squares = [self.squares[i] for i in range(self.n_features)]
        head.offsets = [self.offsets[c] for c in range(self.n_classes)]
        head.offset_squares = [self.offset_squares[c] for c in range(self.n_classes)]
        _store_normal(&self.length, head.length, self.n_classes)
        _store_normal(&self.unknown_share, head.unknown_share, self.n_classes)
        head.eta, head.eta_squares = self.eta, self.eta_squares

    # ---- one message

    cdef int _message(
        self, Table* table, Text* texts, double length, int64_t y, double weight, bint score, Out* out
    ) noexcept nogil:
        cdef uint64_t c, v, first, last, known, i
        cdef int64_t flags = 0
        cdef double unknown_share, total
        cdef bint weighed
        if self._tokens_of(texts, &flags) != 0 or self._features_of(texts) != 0:
            return -1
        if y == -2:
            flags |= CLASS_LIMIT
        self._look_up(table)
        self.n_active = 0
        for c in range(self.n_classes):
            if self.class_counts[c] > 0:
                self.active[self.n_active] = c
                self.n_active += 1
        known = 0
        for i in range(self.ends[1]):
            known += self.features[i].row >= 0
        unknown_share = sqrt(((self.ends[1] - known) + 0.5) / (self.ends[1] + 1.0))
        weighed = self.calibrated and self.n_active > 0 and (score or y >= 0)
        if weighed:
            self._evidence(table, length, unknown_share)
            self._opinion()
        out.numbers[3] = self.learned
        out.numbers[4] = flags
        if score:
            out.numbers[0] = self.n_classes
            out.numbers[1] = known
            out.numbers[2] = self.ends[1] - known
            self._publish(table, weighed, out)
        if y < 0:
            return 0
        return self._learn(table, y, weight, length, unknown_share, weighed)

    # ---- tokens: the twin of Tokenizer.split over ASCII

    cdef int _tokens_of(self, Text* texts, int64_t* flags) noexcept nogil:
        cdef uint64_t g, v
        cdef bint empty = True
        self.scratch_size = 0
        for g in range(self.n_groups):
            if self._read_tokens(texts + g, texts[g].size, self.tokens + g) != 0:
                return -1
            if self.tokens[g].truncated:
                flags[0] |= TRUNCATED
            if self.tokens[g].n:
                empty = False
        if empty:
            flags[0] |= EMPTY
        return 0

    cdef int _add_token(self, Tokens* tokens, uint64_t start, uint64_t size) noexcept nogil:
        if tokens.n == tokens.capacity:
            if grow(<void**>&tokens.items, &tokens.capacity, tokens.n + 1, sizeof(Token)) != 0:
                return -1
        tokens.items[tokens.n].start = start
        tokens.items[tokens.n].size = size
        tokens.n += 1
        return 0

    cdef int _read_tokens(self, Text* text, uint64_t size, Tokens* tokens) noexcept nogil:
        """The tokens of a text's first `size` code points."""
        tokens.n = 0
        tokens.truncated = 0
        if text.kind == 0:
            return self._split(<const uint8_t*>text.data, size, tokens)
        return self._split_unicode(text, size, tokens)

    cdef int _split(self, const uint8_t* data, uint64_t size, Tokens* tokens) noexcept nogil:
        cdef uint64_t i, start, base, length
        cdef uint8_t letter
        cdef uint8_t* low
        base = self.scratch_size
        if grow(<void**>&self.scratch, &self.scratch_capacity, base + size + 8, 1) != 0:
            return -1
        low = self.scratch + base
        self.scratch_size = base + size
        i = 0
        while i < size:
            start = i
            letter = WORD_ASCII[data[i]]
            if letter:
                while letter:
                    low[i] = letter
                    i += 1
                    if i == size:
                        break
                    letter = WORD_ASCII[data[i]]
                if self.peers_words and i - start < 2:
                    continue
            else:
                low[i] = data[i]
                i += 1
                if self.peers_words or ASCII.kind[data[start]] == SPACE:
                    continue
            if tokens.n == self.message_tokens_max:
                tokens.truncated = 1
                break
            length = i - start
            if length > self.token_length_max:
                length = self.token_length_max
                tokens.truncated = 1
            if self._add_token(tokens, base + start, length) != 0:
                return -1
        return 0

    cdef int _split_unicode(self, Text* text, uint64_t size, Tokens* tokens) noexcept nogil:
        """The twin of `_split_by_kind`, and of the peers' rule, over any script."""
        cdef uint64_t i, j, base, at, group
        cdef uint32_t point
        cdef uint8_t kind
        base = at = self.scratch_size
        if (
            grow(<void**>&self.scratch, &self.scratch_capacity, base + 4 * size + 8, 1) != 0
            or grow(<void**>&self.kinds, &self.kinds_capacity, size + 1, 1) != 0
            or grow(<void**>&self.places, &self.places_capacity, size + 1, sizeof(uint64_t)) != 0
        ):
            return -1
        for i in range(size):
            point = PyUnicode_READ(text.kind, text.data, <Py_ssize_t>i)
            point = pages[point >> 8].lower[point & 255]
            self.kinds[i] = pages[point >> 8].kind[point & 255]
            self.places[i] = at
            at += _utf8(point, self.scratch + at)
        self.kinds[size] = SPACE
        self.places[size] = at
        self.scratch_size = at
        i = 0
        while i < size:
            kind = self.kinds[i]
            j = i + 1
            if self.peers_words:
                while j < size and (self.kinds[j] == WORD or self.kinds[j] == CJK):
                    j += 1
                if (kind == WORD or kind == CJK) and j - i >= 2:
                    if self._add_points(tokens, i, j) != 0:
                        return -1
                elif kind != WORD and kind != CJK:
                    j = i + 1
            elif kind == WORD:
                while self.kinds[j] == WORD or self.kinds[j] == MARK or self.kinds[j] == JOINER:
                    j += 1
                if self._add_points(tokens, i, j) != 0:
                    return -1
            elif kind == CJK:
                group = size
                j = i
                while self.kinds[j] == CJK:
                    at = j
                    j += 1
                    while self.kinds[j] == MARK:
                        j += 1
                    if group != size and self._add_points(tokens, group, j) != 0:
                        return -1
                    if self._add_points(tokens, at, j) != 0:
                        return -1
                    group = at
            elif kind == MARK:
                while self.kinds[j] == MARK:
                    j += 1
                if self._add_points(tokens, i, j) != 0:
                    return -1
            elif kind != SPACE:
                if kind == REGION and self.kinds[j] == REGION:
                    j += 1
                elif kind != JOINER:
                    while self.kinds[j] == TONE or self.kinds[j] == MARK:
                        j += 1
                    while self.kinds[j] == JOINER and j + 1 < size and (
                        self.kinds[j + 1] == OTHER or self.kinds[j + 1] == REGION or self.kinds[j + 1] == TONE
                    ):
                        j += 2
                        while self.kinds[j] == TONE or self.kinds[j] == MARK:
                            j += 1
                if self._add_points(tokens, i, j) != 0:
                    return -1
            if tokens.truncated == 2:
                tokens.truncated = 1
                break
            i = j
        return 0

    cdef int _add_points(self, Tokens* tokens, uint64_t first, uint64_t last) noexcept nogil:
        """The token of code points `first` to `last`, cut at its limit; `truncated` 2 where there are enough."""
        if tokens.n == self.message_tokens_max:
            tokens.truncated = 2
            return 0
        if last - first > self.token_length_max:
            last = first + self.token_length_max
            tokens.truncated = 1
        return self._add_token(tokens, self.places[first], self.places[last] - self.places[first])

    # ---- features: the twin of the readers and of Multinomial.features

    cdef int _features_of(self, Text* texts) noexcept nogil:
        cdef uint64_t v, i, first, n, m
        cdef View* view
        cdef Tokens* tokens
        cdef Feature* feature
        n = 0
        for v in range(self.n_views):
            view = self.views + v
            first = n
            self.ends[v] = n
            self.stamp += STAMP
            tokens = self.tokens + view.group
            if view.reader == CHARACTERS and texts[view.group].size > view.characters_max:
                tokens = self.tokens + self.n_groups + view.group
                if self._read_tokens(texts + view.group, view.characters_max, tokens) != 0:
                    return -1
            if self._read_view(v, tokens, first, &n) != 0:
                return -1
            for i in range(first, n):
                feature = self.features + i
                if view.weight == BY_LOG:
                    feature.f = rint(256.0 * log(1.0 + feature.f)) / 256.0 if feature.f > 1.0 else 0.69140625
                elif view.weight == BY_BOOLEAN:
                    feature.f = 1.0
        self.ends[self.n_views] = n
        return 0

    cdef int _read_view(self, uint64_t v, Tokens* tokens, uint64_t first, uint64_t* n) noexcept nogil:
        cdef View* view = self.views + v
        cdef uint64_t i, start, size, edge
        cdef Token* token
        if view.reader == WORDS:
            for i in range(tokens.n):
                if self._count(v, tokens.items[i].start, tokens.items[i].size, first, n) != 0:
                    return -1
        elif view.reader == PAIRS:
            for i in range(1, tokens.n):
                token = tokens.items + i
                size = tokens.items[i - 1].size + 1 + token.size
                start = self._room(size)
                if start == <uint64_t>-1:
                    return -1
                memcpy(self.scratch + start, self.scratch + tokens.items[i - 1].start, tokens.items[i - 1].size)
                self.scratch[start + tokens.items[i - 1].size] = 32
                memcpy(self.scratch + start + tokens.items[i - 1].size + 1, self.scratch + token.start, token.size)
                if self._count(v, start, size, first, n) != 0:
                    return -1
        elif view.reader == CHARACTERS:
            for i in range(tokens.n):
                if self._grams(v, tokens.items + i, view.n, first, n) != 0:
                    return -1
        else:
            edge = view.n if view.n < tokens.n else tokens.n
            for i in range(2 * edge):
                token = tokens.items + (i if i < edge else tokens.n - edge + (i - edge))
                start = self._room(token.size + 1)
                if start == <uint64_t>-1:
                    return -1
                self.scratch[start] = 104 if i < edge else 116  # h, t
                memcpy(self.scratch + start + 1, self.scratch + token.start, token.size)
                if self._count(v, start, token.size + 1, first, n) != 0:
                    return -1
        return 0

    cdef int _grams(self, uint64_t v, Token* token, uint64_t n, uint64_t first, uint64_t* out) noexcept nogil:
        """Runs of n code points of the token padded by a space on both sides; the whole if it is shorter."""
        cdef uint64_t size = token.size + 2
        cdef uint64_t start = self._room(size)
        cdef uint64_t begin, end, characters, i
        cdef uint8_t* padded
        if start == <uint64_t>-1:
            return -1
        padded = self.scratch + start
        padded[0] = 32
        memcpy(padded + 1, self.scratch + token.start, token.size)
        padded[size - 1] = 32
        begin = end = characters = 0
        while end < size and characters < n:  # to the end of the first run
            end += 1
            while end < size and (padded[end] & 0xC0) == 0x80:
                end += 1
            characters += 1
        while True:
            if self._count(v, start + begin, end - begin, first, out) != 0:
                return -1
            if end >= size:
                return 0
            begin += 1
            while (padded[begin] & 0xC0) == 0x80:
                begin += 1
            end += 1
            while end < size and (padded[end] & 0xC0) == 0x80:
                end += 1

    cdef uint64_t _room(self, uint64_t size) noexcept nogil:
        """A place in the scratch; all ones if there is no memory."""
        cdef uint64_t start = self.scratch_size
        if grow(<void**>&self.scratch, &self.scratch_capacity, start + size + 8, 1) != 0:
            return <uint64_t>-1
        self.scratch_size = start + size
        return start

    cdef int _count(
        self, uint64_t v, uint64_t start, uint64_t size, uint64_t first, uint64_t* n
    ) noexcept nogil:
        """Count a feature of view v, whose features begin at `first`: one more, or a new one at the end."""
        cdef uint64_t h = hash_bytes(self.scratch + start, size, self.seed + v)
        cdef uint64_t at = h & self.seen_mask
        cdef Feature* feature
        while self.seen[at] >= self.stamp:  # later stamps are larger, and this is the latest
            feature = self.features + (self.seen[at] - self.stamp)
            if (
                feature.hash == h
                and feature.size == size
                and same(self.scratch + feature.start, self.scratch + start, size)
            ):
                feature.f += 1.0
                return 0
            at = (at + 1) & self.seen_mask
        if grow(<void**>&self.features, &self.features_capacity, n[0] + 1, sizeof(Feature)) != 0:
            return -1
        feature = self.features + n[0]
        feature.start = start
        feature.size = size
        feature.hash = h
        feature.f = 1.0
        self.seen[at] = self.stamp + n[0]
        n[0] += 1
        if (n[0] - first) * 2 > self.seen_mask:
            return self._widen_seen(first, n[0])
        return 0

    cdef int _widen_seen(self, uint64_t first, uint64_t n) noexcept nogil:
        cdef uint64_t size = (self.seen_mask + 1) * 4
        cdef uint64_t* seen = <uint64_t*>calloc(size, sizeof(uint64_t))
        cdef uint64_t i, at
        if seen == NULL:
            return -1
        free(self.seen)
        self.seen = seen
        self.seen_mask = size - 1
        for i in range(first, n):
            at = self.features[i].hash & self.seen_mask
            while self.seen[at] >= self.stamp:
                at = (at + 1) & self.seen_mask
            self.seen[at] = self.stamp + i
        return 0

    cdef void _look_up(self, Table* table) noexcept nogil:
        cdef uint64_t v, i
        cdef Feature* feature
        for i in range(self.ends[self.n_views]):
            snb_prefetch(table.slots + (self.features[i].hash & table.mask))
        for v in range(self.n_views):
            for i in range(self.ends[v], self.ends[v + 1]):
                feature = self.features + i
                feature.row = find(table, self.scratch + feature.start, feature.size, v, feature.hash)

    # ---- evidence: the twins of token_odds, against_rest and SteadyNormal.evidence

    cdef void _evidence(self, Table* table, double length, double unknown_share) noexcept nogil:
        cdef uint64_t v, F = self.n_features
        for v in range(self.n_views):
            self._against_rest(table, v)
        _normal_evidence(&self.length, length, self.active, self.n_active, self.phi + (F - 2) * self.n_active)
        _normal_evidence(
            &self.unknown_share, unknown_share, self.active, self.n_active, self.phi + (F - 1) * self.n_active
        )

    cdef void _against_rest(self, Table* table, uint64_t v) noexcept nogil:
        cdef View* view = self.views + v
        cdef uint64_t C = table.n_classes
        cdef uint64_t S = self.n_active
        cdef double a = view.pseudo
        cdef double pseudo_total = a * <double>(table.known[v] + 1)
        cdef double* totals = table.totals + v * C
        cdef double* x = self.phi + 4 * v * S
        cdef double* q = x + S
        cdef double* rare_x = q + S
        cdef double* rare_q = rare_x + S
        cdef double n = 0.0, k = 0.0, n_t, rare, mean, value, g, z, f
        cdef double* row
        cdef Feature* feature
        cdef uint64_t i, c, j
        for j in range(S):
            n += totals[self.active[j]]
        for j in range(S):
            self.base[j] = log(totals[self.active[j]] + pseudo_total) - log(
                n - totals[self.active[j]] + pseudo_total
            )
        for j in range(4 * S):
            x[j] = 0.0
        for i in range(self.ends[v], self.ends[v + 1]):
            feature = self.features + i
            if feature.row < 0:
                continue
            row = table.counts + <uint64_t>feature.row * C
            f = feature.f
            n_t = 0.0
            for c in range(C):
                n_t += row[c]
            mean = 0.0
            for j in range(S):
                value = _log_count(view, row[self.active[j]]) - _log_count(view, n_t - row[self.active[j]])
                value = value - self.base[j]
                self.d[j] = value
                mean += value
            mean /= <double>S
            rare = f * n_t / (n_t + RARE_TOKENS)
            k += f
            for j in range(S):
                value = self.d[j] - mean
                g = value * fabs(value)
                x[j] += f * value
                q[j] += f * g
                rare_x[j] += rare * value
                rare_q[j] += rare * g
        z = pow(1.0 + k, LENGTH_EXPONENT)
        for j in range(S):
            x[j] = x[j] / z
            q[j] = SQUARE_LAW_SCALE * q[j] / z
            rare_x[j] = rare_x[j] / z
            rare_q[j] = RARE_SQUARE_LAW_SCALE * rare_q[j] / z

    # ---- the calibrated head: the twins of CalibratedHead.opinion and .learn

    cdef void _opinion(self) noexcept nogil:
        cdef uint64_t S = self.n_active
        cdef uint64_t i, j
        cdef double eps, noise
        for j in range(S):
            self.u[j] = self.offsets[self.active[j]]
        for i in range(self.n_features):
            for j in range(S):
                self.u[j] += self.weights[i] * self.phi[i * S + j]
        _softmax(self.u, S, self.s)
        eps = 1.0 / (1.0 + exp(-self.eta))
        noise = eps / <double>S
        for j in range(S):
            self.p[j] = (1.0 - eps) * self.s[j] + noise

    cdef void _learn_head(self, uint64_t y, double weight) noexcept nogil:
        cdef uint64_t S = self.n_active
        cdef uint64_t i, j, c
        cdef double w = weight if weight < 1.0 else 1.0
        cdef double eps = 1.0 / (1.0 + exp(-self.eta))
        cdef double p_y = self.p[y]
        cdef double rho = (1.0 - eps) * self.s[y] / p_y
        cdef double rate = FEATURE_RATE / sqrt(<double>self.n_views)
        cdef double h
        for j in range(S):
            self.r[j] = w * rho * (self.s[j] - (1.0 if j == y else 0.0))
        for i in range(self.n_features):
            h = 0.0
            for j in range(S):
                h += self.r[j] * self.phi[i * S + j]
            self.squares[i] += h * h
            self.weights[i] -= rate * h / sqrt(self.squares[i])
        for j in range(S):
            c = self.active[j]
            self.offset_squares[c] += self.r[j] * self.r[j]
            self.offsets[c] -= OFFSET_RATE * self.r[j] / sqrt(self.offset_squares[c])
        h = w * (self.s[y] - 1.0 / <double>S) / p_y * eps * (1.0 - eps)
        self.eta_squares += h * h
        h = self.eta - h / sqrt(self.eta_squares)
        h = h if h > ETA_LOW else ETA_LOW
        self.eta = h if h < ETA_HIGH else ETA_HIGH

    # ---- the product head: the twins of log_joint, Multinomial.log_likelihood and Prior.log_p

    cdef void _log_prior(self, double* u) noexcept nogil:
        cdef uint64_t j
        cdef double total = 0.0
        if self.uniform:
            for j in range(self.n_active):
                u[j] = -log(<double>self.n_active)
            return
        for j in range(self.n_active):
            total += self.class_counts[self.active[j]]
        total += self.prior_smoothing * <double>self.n_active
        for j in range(self.n_active):
            u[j] = log((self.class_counts[self.active[j]] + self.prior_smoothing) / total)

    cdef void _log_joint(self, Table* table, double* u) noexcept nogil:
        cdef uint64_t v, j
        cdef bint possible = False
        self._log_prior(u)
        for v in range(self.n_views):
            self._log_likelihood(table, v, self.d)
            for j in range(self.n_active):
                u[j] += self.d[j]
        for j in range(self.n_active):
            possible = possible or u[j] > -INFINITY
        if not possible:
            self._log_prior(u)

    cdef void _log_likelihood(self, Table* table, uint64_t v, double* z) noexcept nogil:
        cdef View* view = self.views + v
        cdef uint64_t C = table.n_classes
        cdef double* totals = table.totals + v * C
        cdef double n = 0.0, vocabulary = <double>table.known[v], pseudo_total, n_k, p, phi, count
        cdef double* row
        cdef Feature* feature
        cdef uint64_t i, j
        for j in range(self.n_active):
            z[j] = 0.0
            n += totals[self.active[j]]
        if n == 0:
            return
        pseudo_total = 0.0
        if view.smoothing == SMOOTH_LAPLACE:
            pseudo_total = view.pseudo * vocabulary
        elif view.smoothing == SMOOTH_DIRICHLET:
            pseudo_total = view.pseudo
        for j in range(self.n_active):
            count = totals[self.active[j]] + pseudo_total
            self.base[j] = log(count) if count > 0 else -INFINITY
        for i in range(self.ends[v], self.ends[v + 1]):
            feature = self.features + i
            if feature.row < 0 and view.skips_unknown:
                continue
            row = table.counts + <uint64_t>feature.row * C
            n_k = 0.0
            p = 0.0
            if view.smoothing == SMOOTH_LAPLACE:
                p = view.pseudo
            elif view.smoothing == SMOOTH_DIRICHLET:
                if feature.row >= 0:
                    for j in range(self.n_active):
                        n_k += row[self.active[j]]
                p = view.pseudo * ((n_k + 0.5) / (n + 0.5 * (vocabulary + 1.0)))
            for j in range(self.n_active):
                count = row[self.active[j]] if feature.row >= 0 else 0.0
                phi = count + p
                if phi <= 0:
                    z[j] += -INFINITY
                elif view.smoothing == SMOOTH_LAPLACE:
                    z[j] += feature.f * (_log_count(view, count) - self.base[j])
                else:
                    z[j] += feature.f * (log(phi) - self.base[j])

    # ---- a row of scores: the twin of NaiveBayes._score

    cdef void _publish(self, Table* table, bint weighed, Out* out) noexcept nogil:
        cdef uint64_t C = self.n_classes
        cdef uint64_t S = self.n_active
        cdef uint64_t c, j
        cdef double d = 0.0, others
        cdef double* joint = self.r  # free between a message's learning and the next one's
        if C == 0:
            return
        for c in range(C):
            d += self.class_counts[c]
        if not weighed or self.raw:
            if S > 0:
                self._log_joint(table, joint)
                _softmax(joint, S, self.d)
            if self.raw:
                self._spread(self.d, d, out.raw)
            if not weighed:
                self._spread(self.d, d, out.posterior)
        if weighed:
            self._spread(self.p, d, out.posterior)
        for j in range(S):
            out.u[self.active[j]] = self.u[j] if weighed else joint[j]
        if not weighed and S == C:
            _log_odds(joint, C, out.odds)
            return
        for c in range(C):
            others = 0.0
            for j in range(C):
                if j != c:
                    others += out.posterior[j]
            if others == 0.0:
                out.odds[c] = INFINITY
            elif out.posterior[c] > 0:
                out.odds[c] = log(out.posterior[c]) - log(others)
            else:
                out.odds[c] = -INFINITY

    cdef void _spread(self, double* p, double d, double* out) noexcept nogil:
        """The twin of `head.never_labelled`."""
        cdef uint64_t c, j
        cdef double share, labelled
        if self.n_active == self.n_classes:
            memcpy(out, p, self.n_active * sizeof(double))
            return
        share = 1.0 / (d + <double>self.n_classes)
        labelled = 1.0 - <double>(self.n_classes - self.n_active) * share
        for c in range(self.n_classes):
            out[c] = share
        for j in range(self.n_active):
            out[self.active[j]] = labelled * p[j]

    # ---- learning: the twin of NaiveBayes._learn

    cdef int _learn(
        self, Table* table, uint64_t y, double weight, double length, double unknown_share, bint weighed
    ) noexcept nogil:
        cdef uint64_t v, i, j, fresh_rows, fresh_bytes
        cdef double n, total
        cdef Feature* feature
        fresh_rows = 0
        fresh_bytes = 0
        for i in range(self.ends[self.n_views]):
            if self.features[i].row < 0:
                fresh_rows += 1
                fresh_bytes += self.features[i].size
        if y == self.n_classes:
            if widen(table) != 0:
                return -1
            self.offsets[y] = 0.0
            self.offset_squares[y] = 1.0
            self.class_counts[y] = 0.0
            _add_class(&self.length, y)
            _add_class(&self.unknown_share, y)
            self.n_classes += 1
        if reserve(table, fresh_rows, fresh_bytes) != 0:
            return -1
        if self.calibrated:
            _add_number(&self.length, length, y, weight)
            _add_number(&self.unknown_share, unknown_share, y, weight)
            if weighed and self.n_active > 1 and self.class_counts[y] > 0:
                for j in range(self.n_active):
                    if <uint64_t>self.active[j] == y:
                        self._learn_head(j, weight)
                        break
        for v in range(self.n_views):
            total = 0.0
            for i in range(self.ends[v], self.ends[v + 1]):
                feature = self.features + i
                n = feature.f * weight
                if n == 0:
                    continue
                if feature.row < 0:
                    feature.row = insert(table, self.scratch + feature.start, feature.size, v, feature.hash)
                table.counts[<uint64_t>feature.row * table.n_classes + y] += n
                total += n
            table.totals[v * table.n_classes + y] += total
        self.class_counts[y] += weight
        self.learned += 1
        return 0


cdef inline uint64_t _utf8(uint32_t point, uint8_t* out) noexcept nogil:
    """Write a code point; returns how many bytes it takes."""
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


cdef inline double _log_count(View* view, double count) noexcept nogil:
    """``log(count + alpha)``, from the table where the count is a small multiple of 1/256.

    Whole counts lie side by side after the others, or every one of them would be in the same cache set.
    """
    cdef double scaled = count * 256.0
    cdef int64_t i
    if 0 <= count < LOGS:
        i = <int64_t>count
        if <double>i == count:
            i += LOGS
        else:
            i = <int64_t>scaled
            if i >= LOGS or <double>i != scaled:
                return log(count + view.pseudo)
        if view.logs[i] == 0.0:
            view.logs[i] = log(count + view.pseudo)
        return view.logs[i]
    return log(count + view.pseudo)


cdef void _softmax(const double* u, uint64_t n, double* out) noexcept nogil:
    cdef uint64_t j
    cdef double top = -INFINITY, total = 0.0
    for j in range(n):
        top = u[j] if u[j] > top else top
    if top == -INFINITY:
        for j in range(n):
            out[j] = 1.0 / <double>n
        return
    for j in range(n):
        out[j] = exp(u[j] - top)
        total += out[j]
    for j in range(n):
        out[j] = out[j] / total


cdef void _log_odds(const double* u, uint64_t n, double* out) noexcept nogil:
    cdef uint64_t c, j
    cdef double top, total
    for c in range(n):
        top = -INFINITY
        for j in range(n):
            if j != c and u[j] > top:
                top = u[j]
        if top == -INFINITY:
            out[c] = INFINITY if u[c] > -INFINITY else -INFINITY
            continue
        total = 0.0
        for j in range(n):
            if j != c:
                total += exp(u[j] - top)
        out[c] = u[c] - top - log(total)


cdef void _normal_evidence(
    Normal* normal, double x, const int64_t* active, uint64_t S, double* g
) noexcept nogil:
    cdef double n0 = META_PSEUDO_MESSAGES, v0 = normal.variance_min
    cdef double m = 0.0, s = 0.0, ss = 0.0, m0, pooled, n, mu, spread, variance, mean
    cdef uint64_t j, c
    x = rint(x * 1024.0) / 1024.0
    for j in range(S):
        m += normal.n[active[j]]
        s += normal.s[active[j]]
        ss += normal.ss[active[j]]
    m0 = s / m if m != 0 else 0.0
    pooled = v0
    if m != 0:
        pooled = (ss - m * m0 * m0 + n0 * v0) / (m + n0)
        pooled = pooled if pooled > v0 else v0
    for j in range(S):
        c = active[j]
        n = normal.n[c]
        mu = (normal.s[c] + n0 * m0) / (n + n0)
        spread = normal.ss[c] - 2.0 * mu * normal.s[c] + n * mu * mu
        variance = (spread + n0 * (pooled + (m0 - mu) * (m0 - mu))) / (n + n0)
        variance = variance if variance > v0 else v0
        g[j] = -0.5 * log(variance) - (x - mu) * (x - mu) / (2.0 * variance)
    mean = 0.0
    for j in range(S):
        mean += g[j]
    mean /= <double>S
    for j in range(S):
        g[j] = g[j] - mean
        g[j] = g[j] if g[j] > -META_CLIP else -META_CLIP
        g[j] = g[j] if g[j] < META_CLIP else META_CLIP


cdef void _add_number(Normal* normal, double x, uint64_t c, double weight) noexcept nogil:
    x = rint(x * 1024.0) / 1024.0
    normal.n[c] += weight
    normal.s[c] += weight * x
    normal.ss[c] += weight * x * x


cdef void _add_class(Normal* normal, uint64_t c) noexcept nogil:
    normal.n[c] = normal.s[c] = normal.ss[c] = 0.0


cdef _load_normal(Normal* normal, plain, uint64_t n_classes):
    cdef uint64_t c
    normal.variance_min = plain.variance_min
    for c in range(n_classes):
        normal.n[c], normal.s[c], normal.ss[c] = plain.n[c], plain.s[c], plain.ss[c]


cdef _store_normal(Normal* normal, plain, uint64_t n_classes):
    plain.n = [normal.n[c] for c in range(n_classes)]
    plain.s = [normal.s[c] for c in range(n_classes)]
    plain.ss = [normal.ss[c] for c in range(n_classes)]
