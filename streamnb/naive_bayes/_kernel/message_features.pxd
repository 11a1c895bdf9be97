# Twin of: streamnb.naive_bayes.model.message_features

from libc.stdint cimport int64_t, uint64_t

from streamnb.naive_bayes._kernel.readers cimport Given
from streamnb.naive_bayes._kernel.tokenizer cimport Text


cdef struct Inbox:  # the fields of a batch, checked, message by message; the next batch uses the memory again
    Text* texts
    uint64_t texts_capacity
    Given given
    uint64_t* given_ends  # by message and field
    uint64_t given_ends_capacity
    double* lengths
    uint64_t lengths_capacity


cdef class BatchReader:
    cdef list groups  # the fields of each text
    cdef list given_fields  # of terms: the field and its threshold
    cdef list blocks  # their readers
    cdef Inbox idle  # the memory between two batches
    cdef take(self, Inbox* inbox)
    cdef keep(self, Inbox* inbox)
    cdef list read(self, fields, uint64_t n, Inbox* inbox, list alive)
    cdef _read_texts(self, fields, uint64_t n, Inbox* inbox, list alive)
    cdef list _read_given(self, fields, uint64_t n, Inbox* inbox)
    cdef find_statistics(self, model, uint64_t n, uint64_t width, const int64_t* y, Inbox* inbox, list names)
