# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# Twin of: streamnb.naive_bayes.model.step, streamnb.naive_bayes.model.scoring
"""The compiled driver: `step` scores and learns a batch with the plain twin's order, formulas and bits.

The fields of a batch are read with the GIL held; then the batch is scored and learned without it, message by
message. The counts live in C. The rest of the state, small arrays that `State` and `CalibratedHead` own, is
copied in at the start of a batch and back at its end. Each function names its plain twin. The file is long
because Cython keeps a class in one file; whatever needs no state of the class is in another file.
"""

import numpy as np

cimport cython

from streamnb.base import WEIGHT_MAX, WEIGHT_MIN, Batch, Flag, Scores, checked_labels
from streamnb.naive_bayes.event_models import Bernoulli
from streamnb.naive_bayes.event_models import gaussian as plain_gaussian
from streamnb.naive_bayes.event_models import markov as plain_markov
from streamnb.naive_bayes.event_models import multinomial as plain_multinomial
from streamnb.naive_bayes.event_models.priors import UniformPrior
from streamnb.naive_bayes.event_models.smoothing import Dirichlet, Laplace
from streamnb.naive_bayes.features.readers import (
    Categories, CharacterGrams, Ends, Flags, Numbers, WordPairs, Words,
)
from streamnb.naive_bayes.features.stop_words import stop_words_of
from streamnb.naive_bayes.features.shapes import Shapes
from streamnb.naive_bayes.features.strings import ORDER_MAX, Strings
from streamnb.naive_bayes.posterior import against_rest as plain_evidence
from streamnb.naive_bayes.posterior import calibrated_head as plain_head
from streamnb.naive_bayes.posterior import odds as plain_odds
from streamnb.naive_bayes.posterior import string_evidence as plain_strings
from streamnb.naive_bayes.posterior import trust as plain_trust
from streamnb.naive_bayes.statistics import steady_normal as plain_normal
from streamnb.naive_bayes.statistics.decay import CLASS_WEIGHT_MIN as _CLASS_WEIGHT_MIN, FORGOTTEN as _FORGOTTEN
from streamnb.naive_bayes.statistics.batch_decay import Plan

from libc.math cimport INFINITY, NAN, exp2, isnan, ldexp, log, sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from streamnb.naive_bayes._kernel cimport absent_words, bernoulli, calibrated_head, multinomial
from streamnb.naive_bayes._kernel.absent_words cimport AbsentWords
from streamnb.naive_bayes._kernel.against_rest cimport VIEW_FEATURES, EvidenceConstants, against_rest
from streamnb.naive_bayes._kernel.bernoulli cimport add_flag, is_true_flag
from streamnb.naive_bayes._kernel.calibrated_head cimport Head, HeadConstants, find_errors, form_opinion, learn
from streamnb.naive_bayes._kernel.budget cimport DENSE_CLASSES, charge
from streamnb.naive_bayes._kernel.categorical cimport add_category
from streamnb.naive_bayes._kernel.cells cimport cells_for, count_of
from streamnb.naive_bayes._kernel.counts cimport CountStore
from streamnb.naive_bayes._kernel.entities cimport MAIL, NUMBERS, URLS
from streamnb.naive_bayes._kernel.field_totals cimport FieldSums
from streamnb.naive_bayes._kernel.gaussian cimport BY_ALL, BY_CLASS, BY_GIVEN, Normals, add_log_density
from streamnb.naive_bayes._kernel.kept_logs cimport KeptLogs, is_exact, keep_logs
from streamnb.naive_bayes._kernel.markov cimport (
    CHAIN, STRING_FEATURES, MarkovConstants, log_markov, string_features
)
from streamnb.naive_bayes._kernel.message_features cimport BatchReader, Inbox
from streamnb.naive_bayes._kernel.moments cimport MomentSums, add_number
from streamnb.naive_bayes._kernel.multinomial cimport (
    PSEUDO_MIN, SMOOTH_DIRICHLET, SMOOTH_LAPLACE, SMOOTH_NONE
)
from streamnb.naive_bayes._kernel.odds cimport (
    NEAR_SECOND, OTHERS_MIN, SERIES_MAX, log_odds, log_odds_of, never_labelled, odds_of_many, soften
)
from streamnb.naive_bayes._kernel.readers cimport (
    BLOCK_CATEGORIES, BLOCK_FLAGS, BLOCK_NUMBERS, BY_BOOLEAN, BY_COUNTS, BY_LOG, CHARACTERS, ENDS, GIVEN, LOGS_BITS,
    LOG_WEIGHT_OF_ONE, PAIRS, SHAPES, STAMP, STRINGS, WORDS, Feature, Features, Given, Log, Part, View, count_features,
    read_view, take_given, weigh
)
from streamnb.naive_bayes._kernel.shapes cimport read_shapes
from streamnb.naive_bayes._kernel.steady_normal cimport (
    Normal, NormalConstants, add_to, centre_and_clip, normal_evidence
)
from streamnb.naive_bayes._kernel.strings cimport read_strings
from streamnb.naive_bayes._kernel.table cimport (
    Table, candidate, find, has_room, insert, is_row_of, snb_prefetch, start_of
)
from streamnb.naive_bayes._kernel.token_filter cimport TokenFilter, apply_filter, load_filter
from streamnb.naive_bayes._kernel.trust cimport TrustConstants, damping, find_gradients, take_steps, teaches
from streamnb.naive_bayes._kernel.tokenizer cimport Scratch, Text, Tokens, alphabet, read_tokens
from streamnb.naive_bayes._kernel.values cimport BlockReader

cdef enum:
    AHEAD = 64  # features whose rows are fetched together

cdef uint64_t LAST_STAMP = 0xFFFFFFFE00000000
_NO_AGES = np.empty((4, 0))

cdef int64_t EMPTY = int(Flag.EMPTY), TRUNCATED = int(Flag.TRUNCATED), CLASS_LIMIT = int(Flag.CLASS_LIMIT)

# What C needs while it compiles cannot be read from the plain modules, so it is compared with them.
if (VIEW_FEATURES, LOG_WEIGHT_OF_ONE, PSEUDO_MIN, CHAIN, STRING_FEATURES, SERIES_MAX, OTHERS_MIN, NEAR_SECOND) != (
    plain_evidence.VIEW_FEATURES,
    256 * plain_multinomial.log_weight(1.0),
    plain_multinomial.PSEUDO_MIN,
    ORDER_MAX + 1,
    plain_strings.STRING_FEATURES,
    plain_odds.SERIES_MAX,
    plain_odds.OTHERS_MIN,
    plain_odds.NEAR_SECOND,
):
    raise ImportError("it was compiled with other constants than the plain modules have")

_READERS = {Words: WORDS, WordPairs: PAIRS, CharacterGrams: CHARACTERS, Ends: ENDS, Shapes: SHAPES, Strings: STRINGS}
_BLOCKS = {Categories: BLOCK_CATEGORIES, Flags: BLOCK_FLAGS, Numbers: BLOCK_NUMBERS}
_VARIANCES = {"class": BY_CLASS, "shared": BY_ALL}
_WHOLE = {"numbers": NUMBERS, "urls": URLS, "mail": MAIL}
_WEIGHTS = {"counts": BY_COUNTS, "boolean": BY_BOOLEAN, "log": BY_LOG}

cdef EvidenceConstants EVIDENCE
EVIDENCE.length_exponent = plain_evidence.LENGTH_EXPONENT
EVIDENCE.rare_tokens = plain_evidence.RARE_TOKENS
EVIDENCE.square_law_scale = plain_evidence.SQUARE_LAW_SCALE
EVIDENCE.rare_square_law_scale = plain_evidence.RARE_SQUARE_LAW_SCALE

cdef MarkovConstants MARKOV
MARKOV.first_guess, MARKOV.p_min = plain_markov.FIRST_GUESS, plain_markov.P_MIN
MARKOV.length_exponent, MARKOV.length_pad = plain_strings.LENGTH_EXPONENT, plain_strings.LENGTH_PAD
MARKOV.square_law_scale, MARKOV.clip = plain_strings.SQUARE_LAW_SCALE, plain_strings.CLIP

cdef HeadConstants HEAD
HEAD.evidence_rate = plain_head.EVIDENCE_RATE
HEAD.meta_rate = plain_head.META_RATE
HEAD.trust_rate = plain_head.TRUST_RATE
HEAD.string_rate = plain_head.STRING_RATE
HEAD.offset_rate = plain_head.OFFSET_RATE
HEAD.eta_low, HEAD.eta_high = plain_head.NOISE_BOUNDS
HEAD.square_start = plain_head.ACCUMULATOR_START
HEAD.eta_square_start = plain_head.NOISE_ACCUMULATOR_START

cdef TrustConstants TRUST
TRUST.damping_exponent = plain_trust.DAMPING_EXPONENT
TRUST.step_rate = plain_trust.STEP_RATE
TRUST.squares_start = plain_trust.SQUARES_START
TRUST.squares_max = plain_trust.SQUARES_MAX
TRUST.errors_min = plain_trust.ERRORS_MIN
TRUST.low, TRUST.high = plain_trust.TRUST_BOUNDS

cdef NormalConstants NORMAL
NORMAL.clip = plain_normal.META_CLIP
NORMAL.pseudo_messages = plain_normal.META_PSEUDO_MESSAGES

cdef double FORGOTTEN = _FORGOTTEN, CLASS_WEIGHT_MIN = _CLASS_WEIGHT_MIN


cdef struct Out:  # one row of `Scores`
    double* posterior
    double* odds
    double* u
    double* raw
    double* by_class  # the weight that each class has learned
    int64_t* numbers  # n_classes, known, unknown, learned, flags


cdef struct Age:  # of the current message, in a model that forgets; see `streamnb.naive_bayes.statistics.batch_decay.Plan`
    double instant
    double scale
    double grown
    double shift


@cython.final
cdef class Driver:
    """Drives one model; made once, because a model's settings never change.

    Parameters
    ----------
    model : DrivenModel
        Its counts are a compiled store.
    """

    cdef View* views
    cdef Log* logs
    cdef uint64_t n_views, n_groups, n_given
    cdef int64_t first_tokens  # the view whose known and unknown tokens are counted, or -1
    cdef bint calibrated, raw, uniform
    cdef double prior_smoothing, prior_as_set
    cdef bint fades
    cdef Age age
    cdef bint is_faded  # whether the sums were multiplied for the current message
    cdef double head_at
    cdef EvidenceConstants evidence_constants
    cdef NormalConstants normal_constants
    cdef uint64_t max_tokens, bytes_max  # 0: no limit
    cdef CountStore store  # while a batch runs
    cdef BatchReader reader
    cdef list bernoulli_views
    cdef Scratch scratch
    cdef TokenFilter filter
    cdef bint has_filter
    cdef Tokens* tokens  # of each text, then of the first characters of each text
    cdef Features features
    cdef uint64_t new_rows, new_bytes  # features of the message that no class has taught, and their bytes
    # the model's state while a batch runs
    cdef Head head
    cdef double* class_counts
    cdef double* block
    cdef int64_t* active
    cdef int64_t* waiting  # the declared classes without a weight
    cdef int64_t* declared  # 1 per class that is declared, else 0
    cdef int64_t* place  # each class's place in `active`, or -1
    cdef bint is_sorted  # whether `active`, `waiting` and `place` are those of the class counts
    cdef double messages  # the sum of the class counts, as long as it is the same in any order of adding
    cdef bint is_exact  # whether it is
    cdef KeptLogs* kept  # logarithms of each class: of its count, and of its total in each view
    cdef double* kept_block
    cdef double* joint
    cdef double* base
    cdef double* d
    cdef double* row  # the scores of one message: posterior, odds and u
    cdef double* present
    cdef double* certain
    cdef double damped  # of the message, for the feature of trust
    cdef uint64_t capacity, n_active, n_waiting, n_classes
    cdef int64_t learned

    def __cinit__(self, model):
        cdef uint64_t i
        self.n_views, self.fades = len(model.views), model.decay is not None
        self.evidence_constants, self.normal_constants = EVIDENCE, NORMAL
        self.age = Age(0.0, 1.0, 1.0, 0.0)
        self.views = <View*>calloc(self.n_views, sizeof(View))
        self.features.ends = <uint64_t*>calloc(self.n_views + 1, sizeof(uint64_t))
        self.features.longest = <uint64_t*>calloc(self.n_views, sizeof(uint64_t))
        self.features.seen_mask = 1023
        self.features.seen = <uint64_t*>calloc(1024, sizeof(uint64_t))
        self.kept = <KeptLogs*>calloc(1 + self.n_views, sizeof(KeptLogs))
        if not (self.views and self.features.ends and self.features.longest and self.features.seen and self.kept):
            raise MemoryError("no memory for a driver")
        self.reader, self.bernoulli_views = BatchReader(), []
        self._keep_logs()
        counted = list(model.counts)
        self.first_tokens = -1 if model.token_view is None else model.token_view
        for i, view in enumerate(model.views):
            self._describe(self.views + i, view, counted)
        for i, view in enumerate(model.views):
            if type(view.reader) in _BLOCKS:  # their given tokens come after those of the other views
                self.views[i].group = len(self.reader.given_fields) + len(self.reader.blocks)
                self.reader.blocks.append(BlockReader(view, model.views, self.views[i].group, self.views[i].store))
        self.n_groups, self.n_given = len(self.reader.groups), len(self.reader.given_fields) + len(self.reader.blocks)
        self.tokens = <Tokens*>calloc(2 * self.n_groups + 1, sizeof(Tokens))
        if self.tokens == NULL:
            raise MemoryError("no memory for a driver")
        self.scratch.alphabet = alphabet()
        self.scratch.peers_words = model.tokenizer.rule == "words"
        self.scratch.token_length_max = model.tokenizer.token_length_max
        self.scratch.message_tokens_max = model.tokenizer.message_tokens_max
        for each in set(model.tokenizer.keep_whole):
            self.scratch.whole |= _WHOLE[each]
        load_filter(&self.filter, model.tokenizer, stop_words_of(model.tokenizer.stop_words))
        self.has_filter = self.filter.length_min > 1 or self.filter.slots != NULL
        self.calibrated = model.head is not None
        self.head.n_text_views = len(model.text_views)
        self.head.trusts = self.calibrated and model.head.trusts
        self.head.first_of_strings = VIEW_FEATURES * len(model.text_views) + 2 + len(model.other_views)
        self.head.n_features = (
            self.head.first_of_strings + STRING_FEATURES * len(model.string_views) + self.head.trusts
        )
        self.raw = model.raw
        self.max_tokens, self.bytes_max = model.max_tokens or 0, model.bytes_max or 0
        self.uniform = isinstance(model.prior, UniformPrior)
        self.prior_smoothing = self.prior_as_set = 0.0 if self.uniform else model.prior.smoothing
        for i in range(self.n_views):
            pseudo_observations = self.views[i].normals.pseudo_observations
            self.views[i].as_set = [
                self.views[i].pseudo, self.views[i].without, self.views[i].half, pseudo_observations
            ]

    cdef _describe(self, View* into, view, list counted):
        reader, event = view.reader, view.event_model
        into.fades, into.half = self.fades, 0.5
        into.reader = _READERS.get(type(reader), _BLOCKS.get(type(reader), GIVEN))
        if into.reader == BLOCK_NUMBERS:
            into.normals = _normals_of(event)
            return
        into.store = counted.index(view.name)
        into.weight = _WEIGHTS[event.token_weight]
        if into.reader == STRINGS:
            self._describe_parts(into, [("", reader.fields)])
            into.n, into.characters_max = reader.order, reader.bytes
            return
        into.skips_unknown = event.unknown == "skip"
        if into.reader == BLOCK_FLAGS:
            into.pseudo, into.without = event.smoothing.a, event.smoothing.b
            return
        if into.reader == GIVEN:
            into.group = len(self.reader.given_fields)
            self.reader.given_fields.append((reader.field, reader.above))
        elif into.reader != BLOCK_CATEGORIES:
            self._describe_parts(into, reader.texts())
        if into.reader in (CHARACTERS, ENDS):
            into.n = reader.n
        if into.reader == CHARACTERS:
            into.characters_max = reader.characters_max
        into.logs = self.logs
        into.smoothing = SMOOTH_NONE
        if isinstance(event, Bernoulli):
            self.bernoulli_views.append((into - self.views, view.name))
            into.is_bernoulli, into.pseudo, into.without = True, event.smoothing.a, event.smoothing.b
        elif isinstance(event.smoothing, Laplace):
            into.smoothing = SMOOTH_LAPLACE
            into.pseudo = event.smoothing.alpha
        elif isinstance(event.smoothing, Dirichlet):
            into.smoothing = SMOOTH_DIRICHLET
            into.pseudo = event.smoothing.mu

    cdef _keep_logs(self):
        cdef uint64_t i
        self.logs = <Log*>malloc((1 << LOGS_BITS) * sizeof(Log))
        if self.logs == NULL:
            raise MemoryError("no memory for a driver")
        for i in range(1 << LOGS_BITS):
            self.logs[i].of = -1.0  # which is no count

    cdef _describe_parts(self, View* into, list parts):
        cdef Part* part
        cdef bytes prefix
        into.parts = <Part*>calloc(len(parts) + 1, sizeof(Part))
        if into.parts == NULL:
            raise MemoryError("no memory for a driver")
        for text, fields in parts:
            if fields not in self.reader.groups:
                self.reader.groups.append(fields)
            prefix = text.encode()
            part = into.parts + into.n_parts
            part.group = self.reader.groups.index(fields)
            part.prefix_size = len(prefix)
            part.prefix = <uint8_t*>malloc(len(prefix) + 1)
            if part.prefix == NULL:
                raise MemoryError("no memory for a driver")
            memcpy(part.prefix, <const char*>prefix, len(prefix))
            into.n_parts += 1

    def __dealloc__(self):
        cdef uint64_t i, j
        if self.views != NULL:
            for i in range(self.n_views):
                for j in range(self.views[i].n_parts):
                    free(self.views[i].parts[j].prefix)
                free(self.views[i].parts)
        if self.tokens != NULL:
            for i in range(2 * self.n_groups):
                free(self.tokens[i].items)
        free(self.views)
        free(self.logs)
        free(self.tokens)
        free(self.features.ends)
        free(self.features.longest)
        free(self.features.seen)
        free(self.features.items)
        free(self.features.links)
        free(self.features.kept)
        free(self.scratch.bytes)
        free(self.scratch.kinds)
        free(self.scratch.places)
        free(self.scratch.signs)
        free(self.filter.bytes)
        free(self.filter.slots)
        free(self.block)
        free(self.active)
        free(self.kept)
        free(self.kept_block)

    # ---- a batch

    def step(self, model, batch, bint score, bint learn):
        """Score and learn a batch: the twin of `NaiveBayes.step`. The caller holds the store's lock.

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
        cdef uint64_t i, width
        cdef list alive = []  # the texts that C points into without the GIL
        cdef Inbox inbox
        cdef uint64_t n_known = len(model.classes)
        classes, indices, weights = self._classes(model, batch, learn)
        width = len(classes)
        cdef bint wide = width > 0
        cdef bint whole = score and width == n_known  # every number of the tables will be written
        zeros, nans = (np.empty, np.empty) if whole else (np.zeros, _nans)
        posterior, odds, u, by_class = zeros((n, width)), nans((n, width)), nans((n, width)), zeros((n, width))
        raw = nans((n, width)) if self.raw and score else None
        numbers = np.zeros((n, 5), np.int64)
        cdef int64_t[::1] y = indices
        cdef double[::1] g = np.ones(n) if weights is None else np.array(weights, np.float64)
        cdef double[:, ::1] posterior_view = posterior
        cdef double[:, ::1] odds_view = odds
        cdef double[:, ::1] u_view = u
        cdef double[:, ::1] raw_view = raw if raw is not None else np.empty((0, 0))
        cdef double[:, ::1] by_class_view = by_class
        cdef int64_t[:, ::1] numbers_view = numbers
        cdef bint has_raw = raw is not None
        ages = _NO_AGES
        if self.fades:
            mask = (indices >= 0).tolist()
            times = model.decay.times_of(batch.times, batch.labels if learn else [None] * n)
            plan = Plan(model.decay, mask, times, batch.partition, learns=learn)
            ages = plan.ages
        cdef double[:, ::1] ages_view = ages
        self._begin(model, batch.fields, n, n_known, width, &y[0] if n else NULL, &inbox, alive)
        cdef Table* table = &self.store.table
        cdef Out out
        cdef int failed = 0
        with nogil:
            for i in range(n):
                if self.fades:
                    self._grow_older(ages_view[0, i], ages_view[1, i], ages_view[2, i], ages_view[3, i])
                out.numbers = &numbers_view[i, 0]
                out.posterior = &posterior_view[i, 0] if wide else NULL
                out.odds = &odds_view[i, 0] if wide else NULL
                out.u = &u_view[i, 0] if wide else NULL
                out.raw = &raw_view[i, 0] if wide and has_raw else NULL
                out.by_class = &by_class_view[i, 0] if wide else NULL
                failed = self._message(table, &inbox, i, y[i], g[i], score, &out)
                if failed:
                    break
        self._done(model, classes, &inbox)
        if self.fades:
            if failed:
                plan = Plan(model.decay, mask[:i], times[:i], batch.partition, learns=learn)
                self._follow(plan.after)
            self._set_decay(model, plan.after)
        if failed:
            raise MemoryError(f"no memory to learn message {i} of the batch; those before it are learned")
        n_classes, known, unknown, learned, flags = numbers.T.copy()
        return Scores(tuple(classes), n_classes, posterior, odds, u, raw, known, unknown, learned, by_class, flags)

    def one(self, model, fields, label, weight, at, bint score):
        """Score or learn one message, in columns of length one: `step` without the cost of arrays.

        Parameters
        ----------
        model : State
        fields : mapping of str to list
        label : Label or None
            A message without a label is not learned.
        weight : float
        at : float or None
            The message's time, for a model that forgets by time.
        score : bool
            Whether the posterior is returned.

        Returns
        -------
        dict of Label to float
            The posterior by class; empty for a message that is not scored.

        Raises
        ------
        ValueError
            A field, the label or the weight cannot be used; nothing was learned.
        MemoryError
            There is no memory for the message.
        """
        cdef uint64_t c, width, n_known = len(model.classes)
        cdef int64_t y = -1
        cdef double g = 1.0
        cdef int64_t[5] numbers
        cdef list alive = []
        cdef Inbox inbox
        cdef Out out
        cdef int failed
        classes = model.classes
        if label is not None or weight != 1.0:
            found = model.index.get(label) if classes and type(label) is type(classes[0]) else None
            if found is None or type(weight) is not float or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
                classes, indices, weights = self._classes(model, Batch(fields, [label], [weight]), True)
                y, g = indices[0], weights[0]
            else:
                y, g = found, weight
        width = len(classes)
        if self.fades:
            times = model.decay.times_of(None if at is None else [at], [label])
            plan = Plan(model.decay, [y >= 0], times, "", learns=not score)
            instant, scale, grown, shift = plan.ages[:, 0].tolist()
            self._grow_older(instant, scale, grown, shift)
        self._begin(model, fields, 1, n_known, width, &y, &inbox, alive)
        cdef Table* table = &self.store.table
        out.posterior, out.odds, out.u = self.row, NULL, self.row + self.capacity
        out.raw, out.by_class, out.numbers = NULL, NULL, numbers
        with nogil:
            failed = self._message(table, &inbox, 0, y, g, score, &out)
        self._done(model, classes if y >= 0 else None, &inbox)
        if self.fades:
            after = model.decay.copy() if failed else plan.after
            if failed:
                self._follow(after)
            self._set_decay(model, after)
        if failed:
            raise MemoryError("no memory to learn a message")
        return {label: out.posterior[c] for c, label in enumerate(classes)} if score else {}

    cdef _set_decay(self, model, decay):
        """Give the model the decay at the end of the batch, with the instant up to which the head has faded."""
        decay.head_at = None if isnan(self.head_at) else self.head_at
        model.decay = decay

    cdef _follow(self, decay):
        """Move the landmark to where the sums are, if they were multiplied for a message that was not learned."""
        if self.is_faded:
            decay.shift_for(self.age.instant)

    cdef void _grow_older(self, double instant, double scale, double grown, double shift) noexcept nogil:
        """Multiply every pseudo-count by the weight that a count of 1 has at the message's time."""
        cdef uint64_t v
        cdef View* view
        self.is_faded = False
        self.age.instant, self.age.scale, self.age.grown, self.age.shift = instant, scale, grown, shift
        for v in range(self.n_views):
            view = self.views + v
            view.pseudo, view.without = view.as_set[0] * scale, view.as_set[1] * scale
            view.half, view.normals.pseudo_observations = view.as_set[2] * scale, view.as_set[3] * scale
        self.prior_smoothing = self.prior_as_set * scale
        self.evidence_constants.rare_tokens = EVIDENCE.rare_tokens * scale
        self.normal_constants.pseudo_messages = NORMAL.pseudo_messages * scale

    cdef _done(self, model, classes, Inbox* inbox):
        """End a batch: `classes` are all it may have brought, or `None` if nothing was learned."""
        self.store.tidy()
        self.store = None
        self.reader.keep(inbox)
        if classes is not None:
            self._store(model, classes[: self.n_classes])

    cdef _begin(
        self,
        model,
        fields,
        uint64_t n,
        uint64_t n_known,
        uint64_t width,
        const int64_t* y,
        Inbox* inbox,
        list alive,
    ):
        """Read the batch's fields, then copy the model's state into C.

        A value may run code of its own, which may use the model, but must not teach it a class beyond the
        `n_known` for which there is room.
        """
        self.reader.take(inbox)
        try:
            names = self.reader.read(fields, n, inbox, alive)
            if <uint64_t>len(model.classes) != n_known:
                raise RuntimeError("the code of an object in a message taught the model a new class while the message was read")
            self._load(model, width)
            self.reader.find_statistics(model, n, width, y, inbox, names)
        except BaseException:
            self.reader.keep(inbox)
            raise
        self.store = model.counts
        self.features.seed = self.store.table.seed

    cdef tuple _classes(self, model, batch, bint learn):
        """Return all classes after the batch, each label's index (-1: none, -2: one class too many), and weights."""
        cdef Py_ssize_t i, n = len(batch)
        cdef dict index = dict(model.index)
        classes = list(model.classes)
        indices = np.full(n, -1, np.int64)
        cdef int64_t[::1] view = indices
        if not learn:
            return classes, indices, None
        labels = batch.labels if type(batch.labels) is list else list(batch.labels)
        kind, classes_max = type(classes[0]) if classes else None, model.classes_max
        for i in range(n):
            label = (<list>labels)[i]
            if label is None:
                continue
            c = index.get(label) if type(label) is kind else None
            if c is None:  # of another type than the labels before it, or new
                (label,), _ = checked_labels(Batch({}, [label]), classes)
                kind = type(label) if kind is None else kind
                c = index.get(label)
            if c is None and (classes_max is None or len(classes) < classes_max):
                c = index[label] = len(classes)
                classes.append(label)
            view[i] = -2 if c is None else c
        weights = batch.weights
        if weights is not None:
            _, weights = checked_labels(Batch({}, [None] * n, weights), classes)
        return classes, indices, weights

    # ---- the state, in and out

    cdef _load(self, model, uint64_t width):
        """Copy the model's small arrays into C, with room for `width` classes."""
        cdef uint64_t c, i
        cdef uint64_t F = self.head.n_features
        cdef double* at
        if width > self.capacity or self.block == NULL:
            free(self.block)
            free(self.active)
            self.capacity = width
            self.block = <double*>malloc((2 * F + (21 + F) * width + 1) * sizeof(double))
            self.active = <int64_t*>malloc((4 * width + 1) * sizeof(int64_t))
            free(self.kept_block)
            self.kept_block = <double*>malloc((2 * (1 + self.n_views) * width + 1) * sizeof(double))
            if self.block == NULL or self.active == NULL or self.kept_block == NULL:
                free(self.block)
                self.block = NULL  # so that the next batch tries again
                raise MemoryError("no memory for the classes of a batch")
            for i in range(1 + self.n_views):
                self.kept[i].of, self.kept[i].logs = self.kept_block + 2 * i * width, self.kept_block + (2 * i + 1) * width
                for c in range(width):
                    self.kept[i].of[c] = -1.0  # which is no sum
        width = self.capacity
        at = self.block
        self.head.weights, self.head.weight_squares = at, at + F
        at += 2 * F
        self.head.phi = at
        at += F * width
        self.head.offsets, self.head.offset_squares = at, at + width
        self.head.u, self.head.softmax, self.head.posterior = at + 2 * width, at + 3 * width, at + 4 * width
        self.head.r, self.joint, self.base, self.d = at + 5 * width, at + 6 * width, at + 7 * width, at + 8 * width
        self.class_counts = at + 9 * width
        self.row, self.present, self.certain = at + 10 * width, at + 13 * width, at + 14 * width
        at += 15 * width
        _place(&self.head.length, at, width)
        _place(&self.head.unknown_share, at + 3 * width, width)
        self.waiting, self.declared, self.place = self.active + width, self.active + 2 * width, self.active + 3 * width
        memset(self.declared, 0, width * sizeof(int64_t))
        for label in model.declared:
            self.declared[model.index[label]] = 1
        self.n_classes, self.learned = len(model.classes), model.learned
        if self.fades:
            self.head_at = NAN if model.decay.head_at is None else model.decay.head_at
        self.is_sorted, self.messages, self.is_exact = False, 0.0, not self.fades
        for c in range(self.n_classes):
            self.class_counts[c] = model.class_counts[c]
            self.messages += self.class_counts[c]
            self.is_exact = self.is_exact and is_exact(self.class_counts[c])
        self.is_exact = self.is_exact and is_exact(self.messages)
        for i, name in self.bernoulli_views:
            tally = model.statistics[name].tally
            (<AbsentWords>tally).reserve(width)
            self.views[i].histograms = (<AbsentWords>tally).by_class
        if self.calibrated:
            _fill(self.head.weights, model.head.weights)
            _fill(self.head.weight_squares, model.head.weight_squares)
            _fill(self.head.offsets, model.head.offsets)
            _fill(self.head.offset_squares, model.head.offset_squares)
            _fill_normal(&self.head.length, model.head.length)
            _fill_normal(&self.head.unknown_share, model.head.unknown_share)
            self.head.eta, self.head.eta_squares = model.head.eta, model.head.eta_squares

    cdef _store(self, model, classes):
        """Copy everything that was learned back into the model, with the classes that appeared."""
        cdef uint64_t n = self.n_classes
        for block in self.reader.blocks:
            (<BlockReader>block).adopt()
        model.adopt(classes)
        model.class_counts, model.learned = _list(self.class_counts, n), self.learned
        if not self.calibrated:
            return
        head = model.head
        head.weights = _list(self.head.weights, self.head.n_features)
        head.weight_squares = _list(self.head.weight_squares, self.head.n_features)
        head.offsets, head.offset_squares = _list(self.head.offsets, n), _list(self.head.offset_squares, n)
        _give_back(&self.head.length, head.length, n)
        _give_back(&self.head.unknown_share, head.unknown_share, n)
        head.eta, head.eta_squares = self.head.eta, self.head.eta_squares

    # ---- one message

    cdef int _message(
        self, Table* table, const Inbox* inbox, uint64_t i, int64_t y, double weight, bint score, Out* out
    ) noexcept nogil:
        cdef uint64_t j, tokens = 0, known = 0
        cdef int64_t flags = 0
        cdef double unknown_share
        cdef bint weighed
        self.features.slots, self.features.slots_mask = table.slots, table.mask
        if self._features_of(inbox, i, &flags) != 0:
            return -1
        self._look_up(table)
        if not self.is_sorted:
            self._sort_classes()
        if self.first_tokens >= 0:
            tokens = self.features.ends[self.first_tokens + 1] - self.features.ends[self.first_tokens]
            for j in range(self.features.ends[self.first_tokens], self.features.ends[self.first_tokens + 1]):
                known += self.features.items[j].row >= 0
        unknown_share = sqrt((<double>(tokens - known) + 0.5) / (<double>tokens + 1.0))
        weighed = self.calibrated and self.n_active > 0 and (score or y >= 0)
        if weighed:
            self._weigh(table, inbox, i, unknown_share)
        out.numbers[3] = self.learned
        out.numbers[4] = flags | CLASS_LIMIT if y == -2 else flags
        if score:
            out.numbers[0] = self.n_classes
            out.numbers[1] = known
            out.numbers[2] = tokens - known
            self._publish(table, inbox, i, weighed, out)
        return 0 if y < 0 else self._learn(table, inbox, i, y, weight, unknown_share, weighed)

    cdef void _sort_classes(self) noexcept nogil:
        """Find the classes with a weight, and those that were declared and have none."""
        cdef uint64_t c
        self.n_active = self.n_waiting = 0
        for c in range(self.n_classes):
            self.place[c] = -1
            if self.class_counts[c] > 0:
                self.active[self.n_active], self.place[c] = c, self.n_active
                self.n_active += 1
            elif self.declared[c]:
                self.waiting[self.n_waiting] = c
                self.n_waiting += 1
        self.is_sorted = True

    cdef double _all_messages(self) noexcept nogil:
        """Return the sum of the class counts, from the first class to the last."""
        cdef uint64_t c
        if not self.is_exact:
            self.messages = 0.0
            for c in range(self.n_classes):
                self.messages += self.class_counts[c]
        return self.messages

    cdef int _features_of(self, const Inbox* inbox, uint64_t i, int64_t* flags) noexcept nogil:
        """Read the features of every view: the twin of `read_message` from the tokens on."""
        cdef uint64_t v, first, n = 0, group, begin, p
        cdef const View* view
        cdef const Text* text
        cdef bint empty = self.n_groups > 0
        self.scratch.size = 0
        for group in range(self.n_groups):
            if self._read_tokens(inbox.texts + i * self.n_groups + group, <uint64_t>-1, self.tokens + group) != 0:
                return -1
            if self.tokens[group].truncated:
                flags[0] |= TRUNCATED
            empty = empty and self.tokens[group].n == 0
        if empty:
            flags[0] |= EMPTY
        for v in range(self.n_views):
            view = self.views + v
            first = n
            self.features.ends[v] = n
            if self.features.stamp >= LAST_STAMP:  # the stamps are used up: start over
                memset(self.features.seen, 0, (self.features.seen_mask + 1) * sizeof(uint64_t))
                self.features.stamp = 0
            self.features.stamp += <uint64_t>STAMP
            if view.reader == BLOCK_NUMBERS:
                continue
            if view.reader >= GIVEN:
                group = i * self.n_given + view.group
                begin = self._first_given(inbox, i, v)
                if take_given(
                    &self.features, &self.scratch, view, &inbox.given, begin, inbox.given_ends[group], &n
                ) != 0:
                    return -1
            elif view.reader == STRINGS:
                text = inbox.texts + i * self.n_groups + view.parts[0].group
                if read_strings(&self.features, &self.scratch, view, v, text, &n) != 0:
                    return -1
            else:
                for p in range(view.n_parts):
                    text = inbox.texts + i * self.n_groups + view.parts[p].group
                    if self._read_part(view, view.parts + p, text, &n) != 0:
                        return -1
                if count_features(&self.features, &self.scratch, view.store, first, &n, NULL) != 0:
                    return -1
            weigh(&self.features, view, first, n)
        self.features.ends[self.n_views] = n
        return 0

    cdef inline int _read_part(
        self, const View* view, const Part* part, const Text* text, uint64_t* n
    ) noexcept nogil:
        """Append the features that a view reads in one text."""
        cdef Tokens* tokens = self.tokens + part.group
        if view.reader == SHAPES:
            return read_shapes(&self.features, &self.scratch, part, text, n)
        if view.reader == CHARACTERS and text.size > view.characters_max:
            tokens += self.n_groups
            if self._read_tokens(text, view.characters_max, tokens) != 0:
                return -1
        return read_view(&self.features, &self.scratch, view, part, tokens, n)

    cdef inline int _read_tokens(self, const Text* text, uint64_t size_max, Tokens* tokens) noexcept nogil:
        """Split the first `size_max` code points of a text: the twin of `Tokenizer.split`."""
        if read_tokens(&self.scratch, text, min(text.size, size_max), tokens) != 0:
            return -1
        if self.has_filter:
            apply_filter(&self.filter, &self.scratch, tokens)
        return 0

    cdef void _look_up(self, const Table* table) noexcept nogil:
        """Find every feature's row, and count those without one; `AHEAD` at a time, so that memory is prefetched."""
        cdef uint64_t i, first, last = 0, v = 0, n = self.features.ends[self.n_views]
        cdef Feature* feature
        cdef const uint8_t* token
        self.new_rows = self.new_bytes = 0
        while last < n:
            first = last
            last = first + AHEAD if first + AHEAD < n else n
            for i in range(first, last):
                feature = self.features.items + i
                feature.row = candidate(table, feature.hash)
                if feature.row >= 0:
                    snb_prefetch(table.bounds + feature.row)
                    if table.sparse:
                        snb_prefetch(table.sparse_rows + feature.row)
                    else:
                        snb_prefetch(table.counts + <uint64_t>feature.row * table.n_classes)
                    if table.trusts:
                        snb_prefetch(table.trust + 2 * feature.row)
            for i in range(first, last):
                feature = self.features.items + i
                if feature.row >= 0:
                    snb_prefetch(table.arena + start_of(table, feature.row))
                    if table.sparse:
                        snb_prefetch(table.cells + table.sparse_rows[feature.row].first)
            for i in range(first, last):
                while i >= self.features.ends[v + 1]:
                    v += 1
                feature = self.features.items + i
                token = self.scratch.bytes + feature.start
                if feature.row < 0 and table.old_slots == NULL:
                    pass
                elif feature.row < 0 or not is_row_of(table, feature.row, token, feature.size, self.views[v].store):
                    feature.row = find(table, token, feature.size, self.views[v].store, feature.hash)
                if feature.row < 0:
                    self.new_rows += 1
                    self.new_bytes += feature.size

    cdef void _view_likelihood(self, const Table* table, const Inbox* inbox, uint64_t i, uint64_t v, double* z) noexcept nogil:
        cdef const View* view = self.views + v
        if view.reader > GIVEN:
            self._block_likelihood(table, inbox, i, v, z)
        elif view.reader == STRINGS:
            log_markov(
                table, &self.features, v, self.active, self.place, self.n_active, self.age.scale, &MARKOV, self.base, z
            )
        elif view.is_bernoulli:
            bernoulli.log_bernoulli(
                table, &self.features, view, v, self.active, self.n_active, self.base, self.present, self.certain, z
            )
        else:
            multinomial.log_likelihood(
                table, &self.features, view, v, self.active, self.place, self.n_active,
                self.kept + 1 + v, z
            )

    cdef inline uint64_t _first_given(self, const Inbox* inbox, uint64_t i, uint64_t v) noexcept nogil:
        """Return where view v's given tokens of message i begin."""
        cdef uint64_t group = i * self.n_given + self.views[v].group
        return inbox.given_ends[group - 1] if group else 0

    cdef void _block_likelihood(
        self, const Table* table, const Inbox* inbox, uint64_t i, uint64_t v, double* z
    ) noexcept nogil:
        """Write the evidence of message i's named values per active class to `z`."""
        cdef const View* view = self.views + v
        cdef const Given* given = &inbox.given
        cdef const Feature* feature = self.features.items + self.features.ends[v]
        cdef uint64_t j
        for j in range(self.n_active):
            z[j] = 0.0
        for j in range(self._first_given(inbox, i, v), inbox.given_ends[i * self.n_given + view.group]):
            if view.reader == BLOCK_CATEGORIES:
                add_category(table, feature, <FieldSums*>given.of[j], view, self.active, self.n_active, z)
            elif view.reader == BLOCK_FLAGS:
                add_flag(
                    table,
                    feature,
                    is_true_flag(self.scratch.bytes + feature.start, feature.size),
                    <FieldSums*>given.of[j],
                    view,
                    self.active,
                    self.n_active,
                    z,
                )
            elif given.of[j] != NULL:
                add_log_density(
                    <MomentSums*>given.of[j], self.n_classes, &view.normals, given.counts[j], self.active, self.n_active, z
                )
            feature += 1

    cdef void _weigh(self, const Table* table, const Inbox* inbox, uint64_t i, double unknown_share) noexcept nogil:
        """Compute the calibrated head's features and its opinion: the twin of `NaiveBayes.evidence`."""
        cdef uint64_t S = self.n_active, v, j
        cdef double* phi = self.head.phi
        cdef double* trusted = phi + (self.head.n_features - 1) * S  # the last feature, if the head learns trust
        cdef double q = 0.0
        if self.head.trusts:
            for j in range(S):
                trusted[j] = 0.0
        for v in range(self.n_views):
            if self.views[v].reader < STRINGS:
                against_rest(
                    table, &self.features, self.views + v, v, self.active, S, &self.evidence_constants, self.base, self.d, phi,
                    trusted
                )
                phi += VIEW_FEATURES * S
                for j in range(self.features.ends[v], self.features.ends[v + 1]):
                    q += self.features.items[j].f * self.features.items[j].f
        normal_evidence(&self.head.length, inbox.lengths[i], self.active, S, &self.normal_constants, phi)
        normal_evidence(&self.head.unknown_share, unknown_share, self.active, S, &self.normal_constants, phi + S)
        phi += 2 * S
        for v in range(self.n_views):
            if self.views[v].reader >= GIVEN:
                self._view_likelihood(table, inbox, i, v, phi)
                centre_and_clip(phi, S, NORMAL.clip)
                phi += S
        for v in range(self.n_views):
            if self.views[v].reader == STRINGS:
                string_features(
                    table, &self.features, v, self.active, self.place, S, self.age.scale, &MARKOV, self.base, phi
                )
                phi += STRING_FEATURES * S
        if self.head.trusts:
            self.damped = damping(q, &TRUST)
            for j in range(S):
                trusted[j] = self.damped * trusted[j]
        form_opinion(&self.head, self.active, S, self.class_counts if self.fades else NULL, self.age.scale)

    cdef void _log_prior(self, double* u) noexcept nogil:
        """The twin of `LearnedPrior.log_p` and `UniformPrior.log_p`."""
        cdef uint64_t j
        cdef double total, share, log_n
        if self.uniform:
            log_n = log(<double>self.n_active)
            for j in range(self.n_active):
                u[j] = -log_n
            return
        total = self._all_messages() + self.prior_smoothing * <double>self.n_active
        if self.n_active > <uint64_t>DENSE_CLASSES:
            log_n = log(total)
            keep_logs(
                self.kept, self.class_counts, self.prior_smoothing, self.active, self.n_active,
                self.n_active == self.n_classes,
            )
            for j in range(self.n_active):
                u[j] = self.kept.logs[j] - log_n
            return
        for j in range(self.n_active):
            share = (self.class_counts[self.active[j]] + self.prior_smoothing) / total
            u[j] = log(share) if share > 0 else -INFINITY

    cdef void _log_joint(self, const Table* table, const Inbox* inbox, uint64_t i) noexcept nogil:
        """Write the log of prior times likelihood to `joint`, or of the prior where maximum likelihood gives 0/0."""
        cdef uint64_t v, j
        cdef bint possible = False
        self._log_prior(self.joint)
        for v in range(self.n_views):
            self._view_likelihood(table, inbox, i, v, self.d)
            for j in range(self.n_active):
                self.joint[j] += self.d[j]
        for j in range(self.n_active):
            if self.joint[j] > -INFINITY:
                possible = True
                break
        if not possible:
            self._log_prior(self.joint)

    cdef void _publish(self, const Table* table, const Inbox* inbox, uint64_t i, bint weighed, Out* out) noexcept nogil:
        """Write one row of scores: the twin of `NaiveBayes._score`."""
        cdef uint64_t C = self.n_classes, S = self.n_active, c, j
        cdef double weight = 0.0, top = 0.0
        cdef const double* u = self.head.u if weighed else self.joint
        if C == 0:
            return
        if out.by_class != NULL:
            if self.fades:
                for c in range(C):
                    out.by_class[c] = self.class_counts[c] / self.age.scale
            else:
                memcpy(out.by_class, self.class_counts, C * sizeof(double))
        if S < C:  # else nothing asks for it
            weight = self._all_messages() / self.age.scale
        if not weighed or out.raw != NULL:
            if S > 0:
                self._log_joint(table, inbox, i)
                top = soften(self.joint, S, self.d)
            if out.raw != NULL:
                never_labelled(self.d, self.active, S, self.waiting, self.n_waiting, C, weight, out.raw)
        never_labelled(
            self.head.posterior if weighed else self.d,
            self.active,
            S,
            self.waiting,
            self.n_waiting,
            C,
            weight,
            out.posterior,
        )
        if S == C:
            memcpy(out.u, u, C * sizeof(double))
        else:
            for c in range(C):
                out.u[c] = NAN
            for j in range(S):
                out.u[self.active[j]] = u[j]
        if out.odds == NULL:  # not asked for
            return
        if weighed or S < C:
            log_odds_of(out.posterior, C, out.odds)
        elif C > <uint64_t>DENSE_CLASSES:
            odds_of_many(self.joint, out.posterior, top, C, self.base, out.odds)
        else:
            log_odds(self.joint, C, self.base, out.odds)

    cdef int _learn(
        self, Table* table, const Inbox* inbox, uint64_t i, uint64_t y, double weight, double unknown_share, bint weighed
    ) noexcept nogil:
        """The twin of `NaiveBayes._learn`. All memory is allocated before anything changes; returns -1 without it."""
        cdef uint64_t v, j, n_words, first = 0, last = 0
        cdef double n, total, plain_weight = weight
        cdef bint steps, has_gradients = False
        cdef double* count
        cdef Feature* feature
        cdef FieldSums* field
        cdef void** of
        cdef absent_words.Histogram* histogram
        if y == self.n_classes:
            if self._widen() != 0:
                return -1
            self._add_class(y)
        for v in range(self.n_views):
            n_words = self.features.ends[v + 1] - self.features.ends[v]
            if self.views[v].is_bernoulli and absent_words.reserve(self.views[v].histograms + y, n_words) != 0:
                return -1
        steps = weighed and self.n_active > 1 and self.class_counts[y] > 0
        if steps:
            find_errors(&self.head, self.n_active, self.place[y], weight)
            if self.head.trusts and teaches(self.head.r, self.n_active, weight, &TRUST):
                has_gradients = True
                self._find_gradients(table)
        if self.fades:
            if self.age.shift != 0 and self._fade(table) != 0:
                return -1
            weight = weight * self.age.grown
        if self._surplus(table) != 0 and self._make_room(table) != 0:
            return -1
        if not has_room(table, self.new_rows, self.new_bytes, self._new_cells(table)) and self._grow(table) != 0:
            return -1
        if self.calibrated:
            add_to(&self.head.length, inbox.lengths[i], y, weight)
            add_to(&self.head.unknown_share, unknown_share, y, weight)
            if steps:
                if self.fades:
                    self._fade_head()
                learn(&self.head, self.active, self.n_active, self.place[y], plain_weight, &HEAD)
            for v in range(self.n_views if has_gradients else 0):
                if self.views[v].reader < STRINGS:
                    take_steps(table, &self.features, v, self.age.grown if self.fades else 1.0, &TRUST)
        for v in range(self.n_views):
            of = NULL
            if self.views[v].reader > GIVEN:
                last = inbox.given_ends[i * self.n_given + self.views[v].group]
                first = self._first_given(inbox, i, v)
                of = inbox.given.of + first
            if self.views[v].reader == BLOCK_NUMBERS:
                for j in range(first, last):
                    add_number(<MomentSums*>inbox.given.of[j], inbox.given.counts[j], y, weight)
                continue
            total = 0.0
            for j in range(self.features.ends[v], self.features.ends[v + 1]):
                feature = self.features.items + j
                n = feature.f * weight
                if n == 0:
                    continue
                if of != NULL:
                    field = <FieldSums*>of[j - self.features.ends[v]]
                    field.totals[y] += n
                    field.states += feature.row < 0
                if feature.row < 0:
                    feature.row = insert(
                        table, self.scratch.bytes + feature.start, feature.size, self.views[v].store, feature.hash
                    )
                count = count_of(table, feature.row, y)
                if self.views[v].is_bernoulli:
                    absent_words.move(self.views[v].histograms + y, count[0], count[0] + n)
                count[0] += n
                total += n
            table.totals[self.views[v].store * table.n_classes + y] += total
            if self.views[v].is_bernoulli:
                histogram = self.views[v].histograms + y
                absent_words.set_messages(histogram, histogram.messages + weight)
        self.is_sorted = self.is_sorted and self.class_counts[y] > 0
        self.class_counts[y] += weight
        self.messages += weight
        self.is_exact = self.is_exact and is_exact(weight) and is_exact(self.messages)
        self.learned += 1
        return 0

    cdef void _find_gradients(self, const Table* table) noexcept nogil:
        """Find the gradients of the message's known tokens, from the errors and the counts before it is learned."""
        cdef uint64_t v
        for v in range(self.n_views):
            if self.views[v].reader < STRINGS:
                find_gradients(
                    table, &self.features, self.views + v, v, self.active, self.n_active, &self.evidence_constants,
                    self.damped, self.head.r, self.base, self.d,
                )

    cdef void _fade_head(self) noexcept nogil:
        """The twin of `Decay.fade_of_head` and `CalibratedHead.fade`: the only way a half-life changes the steps."""
        cdef double since = 0.0 if isnan(self.head_at) else self.age.instant - self.head_at
        since = since if since > 0.0 else 0.0
        calibrated_head.fade(&self.head, self.n_classes, exp2(-since), &HEAD)
        if isnan(self.head_at) or self.age.instant > self.head_at:
            self.head_at = self.age.instant

    cdef int _fade(self, Table* table) noexcept nogil:
        """Move the landmark: the twin of `merging.fade`. The rows that stay are looked up again."""
        cdef double factor = ldexp(1.0, -<int>min(self.age.shift, 10000.0))
        cdef double least = 0.0 if factor >= 1.0 else FORGOTTEN
        cdef int failed = 0
        cdef uint64_t v, c
        with gil:
            try:
                self.store.fade_by(factor)
            except MemoryError:
                failed = -1
        if failed:
            return failed
        self.is_faded = True
        self._look_up(table)
        _fade_classes(self.class_counts, NULL, NULL, self.n_classes, factor)
        _fade_classes(self.head.length.n, self.head.length.s, self.head.length.ss, self.n_classes, factor)
        _fade_classes(
            self.head.unknown_share.n, self.head.unknown_share.s, self.head.unknown_share.ss, self.n_classes, factor
        )
        for v in range(self.n_views):
            if self.views[v].is_bernoulli:
                for c in range(self.n_classes):
                    absent_words.fade(self.views[v].histograms + c, factor, least, self.class_counts[c])
        with gil:
            for block in self.reader.blocks:
                (<BlockReader>block).fade(table, factor)
        return 0

    cdef inline uint64_t _surplus(self, const Table* table) noexcept nogil:
        """Return how many tokens to evict before the message is learned: the twin of `CountStore.surplus`."""
        cdef uint64_t n = 0, excess
        if self.max_tokens and table.rows + self.new_rows > self.max_tokens:
            excess = table.rows + self.new_rows - self.max_tokens
            n = max(self.max_tokens // 16, excess)
        if self.bytes_max and charge(
            table, self.new_rows, self.new_bytes, self._new_cells(table)
        ) > self.bytes_max:
            n = max(n, table.rows // 16, 1)
        return min(n, table.rows)

    cdef int _make_room(self, Table* table) noexcept nogil:
        """Evict rare tokens: the twin of `CountStore.make_room`. The rows that stay are looked up again."""
        cdef uint64_t n = self._surplus(table), v
        cdef int failed = 0
        while n and not failed:
            with gil:
                try:
                    self.store.evict(n)
                except MemoryError:
                    failed = -1
            self._look_up(table)
            n = self._surplus(table)
        for v in range(self.n_views):
            if self.views[v].is_bernoulli:
                absent_words.recount_left(self.views[v].histograms, table, self.views[v].store, self.class_counts)
        with gil:
            for block in self.reader.blocks:
                if (<BlockReader>block).kind != BLOCK_NUMBERS:
                    (<BlockReader>block).recount(table)
        return failed

    cdef inline uint64_t _new_cells(self, const Table* table) noexcept nogil:
        """Return the most new cells that the message may take."""
        cdef uint64_t i, n = 0
        if table.sparse:
            for i in range(self.features.ends[self.n_views]):
                n += cells_for(table, self.features.items[i].row)
        return n

    cdef int _grow(self, const Table* table) noexcept nogil:
        with gil:
            try:
                self.store.grow(self.new_rows, self.new_bytes, self._new_cells(table))
            except MemoryError:
                return -1
        return 0

    cdef int _widen(self) noexcept nogil:
        with gil:
            try:
                self.store.widen()
            except MemoryError:
                return -1
        return 0

    cdef void _add_class(self, uint64_t c) noexcept nogil:
        self.class_counts[c] = 0.0
        self.head.offsets[c], self.head.offset_squares[c] = 0.0, 1.0
        self.head.length.n[c] = self.head.length.s[c] = self.head.length.ss[c] = 0.0
        self.head.unknown_share.n[c] = self.head.unknown_share.s[c] = self.head.unknown_share.ss[c] = 0.0
        self.n_classes += 1
        self.is_sorted = False


cdef void _fade_classes(double* n, double* a, double* b, uint64_t n_classes, double factor) noexcept nogil:
    """The twin of `decay.fade_classes`: weights, and up to two other sums."""
    cdef uint64_t c
    cdef double left
    for c in range(n_classes):
        left = factor if n[c] * factor >= CLASS_WEIGHT_MIN or n[c] == 0.0 else CLASS_WEIGHT_MIN / n[c]
        n[c] = n[c] * left
        if a != NULL:
            a[c] = a[c] * left
        if b != NULL:
            b[c] = b[c] * left


cdef Normals _normals_of(event):
    """Return a `Gaussian`'s parameters as a struct."""
    cdef Normals normals
    normals.variance = _VARIANCES.get(event.variance, BY_GIVEN)
    normals.given = event.variance if normals.variance == BY_GIVEN else 0.0
    normals.pseudo_observations, normals.robust = event.pseudo_observations, event.robust
    normals.variance_min, normals.broad = plain_gaussian.VARIANCE_MIN, plain_gaussian.BROAD
    return normals


def _nans(shape):
    return np.full(shape, np.nan)


cdef _fill(double* into, values):
    cdef uint64_t i = 0
    for value in values:
        into[i] = value
        i += 1


cdef _place(Normal* normal, double* at, uint64_t width):
    normal.n, normal.s, normal.ss = at, at + width, at + 2 * width


cdef _give_back(const Normal* normal, plain, uint64_t n):
    plain.n, plain.s, plain.ss = _list(normal.n, n), _list(normal.s, n), _list(normal.ss, n)


cdef _fill_normal(Normal* into, plain):
    into.variance_min = plain.variance_min
    _fill(into.n, plain.n)
    _fill(into.s, plain.s)
    _fill(into.ss, plain.ss)


cdef list _list(const double* values, uint64_t n):
    cdef uint64_t i
    return [values[i] for i in range(n)]
