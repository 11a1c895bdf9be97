"""Stop words: frequent words of a language that the tokenizer drops.

The lists are those of Stopwords ISO, from the package stopwordsiso (``streamnb[stopwords]``). They are
generous: the English list has about 1,300 words, among them "free" and "call", which help to recognise spam.
"""

from __future__ import annotations

import hashlib
from functools import cache

from streamnb.naive_bayes.features.alphabet import lower


@cache
def stop_words_of(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the stop words of several languages as one set, in lower case.

    Parameters
    ----------
    languages : tuple of str
        Language codes of two letters (ISO 639-1).

    Raises
    ------
    ValueError
        There is no list for one of the languages, or stopwordsiso is not installed.
    """
    if not languages:
        return frozenset()
    try:
        import stopwordsiso
    except ImportError as error:
        raise ValueError("stop words need stopwordsiso: pip install 'streamnb[stopwords]'") from error
    known = stopwordsiso.langs()
    for language in languages:
        if language not in known:
            raise ValueError(
                f"no stop words for {language!r}; there are lists for {', '.join(sorted(known))}"
            )
    return frozenset(lower(word) for word in stopwordsiso.stopwords(languages))


def words_fingerprint(words: frozenset[str]) -> str:
    """Return a fingerprint of a list of words: 16 hexadecimal digits of the BLAKE2 hash of its sorted lines.

    A snapshot keeps it, so that a changed list is recognised as a changed setting.

    Examples
    --------
    >>> words_fingerprint(frozenset({"a", "the"}))
    '22d06f9939df2e23'
    """
    text = "\n".join(sorted(words))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
