"""The demo's mailbox: the same on every machine, with the events and shares that its docstring promises."""

import json
from collections import Counter
from hashlib import sha256
from itertools import islice, pairwise

import pytest

from streamnb.cli.demo.mailbox import CAMPAIGNS, Mail, mailbox

GOLDEN = "4c9133d7472f352b5f1cadd1202b874c070b2f2111eece5997aba34650e24132"


@pytest.fixture(scope="module")
def mails() -> list[Mail]:
    """Return enough messages for every campaign to come twice."""
    return list(mailbox(n=8_000))


def text(mail: Mail) -> str:
    """Return the text of a mail in lower case."""
    assert mail["text"] is not None
    return mail["text"].lower()


def test_the_stream_is_the_one_that_was_committed() -> None:
    """The first 1,000 messages have the same hash on every machine and version of Python."""
    lines = (json.dumps(mail, sort_keys=True) + "\n" for mail in mailbox(seed=0, n=1_000))
    assert sha256("".join(lines).encode()).hexdigest() == GOLDEN


def test_a_seed_determines_the_stream() -> None:
    """Equal seeds give equal streams, with and without an end; another seed gives another stream."""
    endless = list(islice(mailbox(seed=7), 300))
    assert endless == list(mailbox(seed=7, n=300))
    assert [text(mail) for mail in endless] != [text(mail) for mail in mailbox(seed=8, n=300)]


def test_ids_number_the_messages_from_one(mails: list[Mail]) -> None:
    """The ids have seven digits and no gap."""
    assert [mail["id"] for mail in mails] == [f"mail-{number:07d}" for number in range(1, len(mails) + 1)]


def test_label_shares_are_as_documented(mails: list[Mail]) -> None:
    """About 35 % of the labelled messages are spam and about 2 % of all carry no label."""
    labels = Counter(mail["label"] for mail in mails)
    assert set(labels) == {"ham", "spam", None}
    assert labels["spam"] / (labels["spam"] + labels["ham"]) == pytest.approx(0.35, abs=0.02)
    assert labels[None] / len(mails) == pytest.approx(0.02, abs=0.006)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("neurips_at", [0, 37, 500])
def test_neurips_comes_first_where_promised(seed: int, neurips_at: int) -> None:
    """The first use is at `neurips_at`, in labelled ham with a story; later ones are in ham too."""
    stream = list(mailbox(seed, n=neurips_at + 600, neurips_at=neurips_at))
    said = [index for index, mail in enumerate(stream) if "neurips" in text(mail)]
    assert said[0] == neurips_at
    assert stream[neurips_at]["label"] == "ham"
    assert "call for papers" in text(stream[neurips_at])
    assert [
        index for index, mail in enumerate(stream) if mail.get("story") == "first mail about neurips"
    ] == [neurips_at]
    assert len(said) > 5
    assert {stream[index]["label"] for index in said} <= {"ham", None}


def test_other_conferences_are_there_from_the_start() -> None:
    """ICML and NIPS are frequent words before neurips is used for the first time."""
    words = Counter(word for mail in mailbox(n=500) for word in text(mail).split())
    assert words["icml"] > 5
    assert words["nips"] > 5


def test_campaigns_replace_one_another(mails: list[Mail]) -> None:
    """Campaigns start about 400 messages apart, in a fixed order; the first message of each has a story."""
    starts = [index for index, mail in enumerate(mails) if "story" in mail and mail["label"] == "spam"]
    names = [str(mails[index]["story"]).removeprefix("a new spam campaign: ") for index in starts]
    assert set(names) == set(CAMPAIGNS)
    assert names[: len(CAMPAIGNS)] == names[len(CAMPAIGNS) : 2 * len(CAMPAIGNS)]
    assert all(340 <= after - before <= 460 for before, after in pairwise(starts))


def test_a_campaign_has_its_own_words(mails: list[Mail]) -> None:
    """At least five words are frequent in one campaign's spam and rare in the next one's."""
    starts = [index for index, mail in enumerate(mails) if "story" in mail and mail["label"] == "spam"]
    spans = [mails[first:after] for first, after in pairwise(starts)]
    for now, then in pairwise(spans):
        shares = []
        for span in (now, then):
            spam = [set(text(mail).split()) for mail in span if mail["label"] == "spam"]
            counts = Counter(word for words in spam for word in words)
            shares.append({word: number / len(spam) for word, number in counts.items()})
        own = [word for word, share in shares[0].items() if share > 0.1 and shares[1].get(word, 0) < 0.05]
        assert len(own) >= 5


def test_a_story_is_told_only_where_something_happens(mails: list[Mail]) -> None:
    """All other messages lack the key; it is never None."""
    told = [mail["story"] for mail in mails if "story" in mail]
    assert None not in told
    assert len(told) < len(mails) / 300


def test_texts_vary_and_are_short(mails: list[Mail]) -> None:
    """More than 95 % are distinct; all have 5 to 40 words and no unfilled slot."""
    texts = [text(mail) for mail in mails]
    assert len(set(texts)) > 0.95 * len(texts)
    assert all(5 <= len(each.split()) <= 40 for each in texts)
    assert not any(set("{}|") & set(each) for each in texts)


def test_the_vocabulary_never_stops_growing(mails: list[Mail]) -> None:
    """Every 1,000 messages bring more than 200 new words, but fewer than one per message."""
    seen: set[str] = set()
    for first in range(0, len(mails), 1_000):
        words = {word for mail in mails[first : first + 1_000] for word in text(mail).split()}
        assert len(words - seen) > 200
        assert first == 0 or len(words - seen) < 1_000
        seen |= words


@pytest.mark.parametrize("settings", [{"n": -1}, {"neurips_at": -1}])
def test_negative_numbers_are_refused(settings: dict[str, int]) -> None:
    """The call raises, before the first message is asked for."""
    with pytest.raises(ValueError, match="negative"):
        mailbox(**settings)
