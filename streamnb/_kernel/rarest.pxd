from libc.stdint cimport uint64_t

from streamnb._kernel.statements cimport Statements
from streamnb._kernel.table cimport Table


cdef rarest(const Table* table, Statements statements, uint64_t n)
