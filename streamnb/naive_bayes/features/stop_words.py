"""Stop words: the words of a language that are left out, from lists that others keep.

The lists are those of Stopwords ISO, as the package stopwordsiso carries them (``streamnb[stopwords]``). They
are generous: the English one has some 1,300 words, "free" and "call" among them, which tell spam.
"""

from __future__ import annotations

import hashlib
from functools import cache

from streamnb.naive_bayes.features.alphabet import lower


@cache
def stop_words_of(languages: tuple[str, ...]) -> frozenset[str]:
    """The stop words of some languages together, in lower case.

    Parameters
    ----------
    languages : tuple of str
        Two letters each (ISO 639-1).

    Raises
    ------
    ValueError
        There is no list for a language, or no lists are installed.
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
    """What tells one list from another: 16 hexadecimal digits of the BLAKE2 hash of its sorted lines.

    Examples
    --------
    >>> words_fingerprint(frozenset({"a", "the"}))
    '22d06f9939df2e23'
    """
    text = "\n".join(sorted(words))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
