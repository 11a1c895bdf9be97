# Twin of: nothing; it makes this package one that Cython can cimport from
