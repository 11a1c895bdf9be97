"""The demo's stream: the generated mailbox of a small research group, with events that test a model.

Ham is mail from colleagues. Spam comes in campaigns, each with its own words; a new campaign replaces the
previous one about every 400 messages. Half-way through the demo the word "NeurIPS" appears for the first
time, which no class has learned. Names, tickets and amounts keep the vocabulary growing forever. Some ham is
about invoices and prizes, and some spam imitates a colleague: a plain online naive Bayes predicts 96 to 98 %
of the first 1,000 messages and 98 % of the first 10,000 correctly, and no model is expected to reach 100 %.

All random numbers come from one `random.Random.random`, the only method whose numbers Python promises not to
change; choices are made here. The same seed gives the same mailbox on every machine and version of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from random import Random

Mail = dict[str, str | None]

SPAM_SHARE = 0.35
UNLABELLED_SHARE = 0.02
CAMPAIGNS = ("pills", "loans", "crypto", "parcels", "lottery", "jobs", "diets")
_SHORTEST, _LONGER = 360, 81  # a campaign lasts 360 to 440 messages, ham included
_AWKWARD_HAM = 0.06  # ham about invoices and prizes
_DRESSED_SPAM = 0.08  # spam that imitates a colleague
_LEFT_OVER = 0.06  # spam of the campaign before
_NEURIPS_SHARE = 0.05  # of ham, after the word's first use

# A rule is a name and its alternatives, after the colon or on indented lines, separated by ` | `. A text is
# one alternative, with every `{name}` in it replaced by a text of that rule. Some names are not rules; the
# program fills them: {ticket}, {amount}, {few} and {many} with numbers, {subject} and {pitch} with the topic
# of a mail, and in spam {brand} with the campaign's brand.
_GRAMMAR = """
ham: {hello} {subject} {bye} | {subject} {bye} | {hello} {subject} | {subject}
subject: {meeting} | {meeting} | {review} | {review} | {travel} | {family} | {reading} | {reading} | {office}
hello: Hi {first}, | Hi all, | Dear {first}, | {first}, | Hello {first}, | Morning {first}, | Hi,
bye: Thanks, {first} | Best, {first} | Cheers, {first} | {first} | See you {day}, {first} | {first} {surname}
meeting:
  Can we move the {weekly} to {day} at {time}? I have to {chore} before lunch.
  Notes from the {weekly}: {surname} takes ticket {ticket}, the {part} waits for {first}, next one {day}.
  I will be ten minutes late for the {weekly}, please start with the {part} without me.
  Could you and {first} {surname} join the {weekly} on {day}? We should decide about the {part}.
  No {weekly} this week, half of us are in {city} and the rest have a cold.
review:
  I left {few} comments on your {part} branch, mostly names; the logic in {ticket} looks right to me.
  Ticket {ticket} fails on my machine only, after {few} runs. Could you look at the {part} before {day}?
  Merged {ticket}. The {part} is suspiciously fast now and the tests for {surname}'s case still pass.
  Why does the {part} sort twice? If there is a reason, please write it down beside the code.
  The build is red since {time}: the {part} test of {ticket} depends on the order of the files. Fix follows.
  {first} found the bug in the {part}: an off by one when the batch is empty. Review of {ticket} welcome.
travel:
  My train to {city} leaves {day} at {time}, so I can still give the talk about the {part} in the morning.
  I booked two rooms in {city} for the {venue} week, {amount} euros with breakfast, walking distance.
  Did your flight to {city} get moved too? Mine now leaves at {time} on {day}.
  Greetings from {city}. The {venue} posters were crowded and {surname} asked about our {part}.
family:
  {child} has a fever, so I work from home until {day}. Call me about {ticket} any time after {time}.
  Can you pick up {child} from {practice} on {day}? The {weekly} may take longer.
  Mum arrives from {city} on {day} and would love to see you; dinner at ours around {time}?
  We are making {dish} on {day}, bring {first} and the children, and nothing else.
reading:
  The reading group meets {day} {time} in {room}: {surname} and {surname} on {topic}, from {venue} last year.
  {surname} has a new paper on {topic}, I think the second experiment answers your question from {day}.
  Our {venue} reviews are back: two like the {topic} part, the third wants a comparison with {surname}.
  Who wants to present {topic} next? {first} did the last two and would like a break.
  The {venue} deadline is in {few} days; the draft on {topic} lacks a figure and a good title.
office:
  Somebody left a {thing} in room {room}. It is at {first}'s desk until {day}.
  The coffee machine is back, {surname} repaired it with a {thing}.
  Slides of the {weekly} are here: {site} | The map of {city} is here: {site}
  Lunch at {time}, {first}? Room {room}. | Back at {time}, start without me.
  The server room is warm again, so I turned off node {few} until {day}.
awkward:
  The invoice for {venue} registration, {amount} euros, waits for your signature; accounts wants it by {day}.
  {surname} won the best paper prize at {venue}! Cake in room {room} on {day} at {time}, free for everybody.
  Your travel claim for {city} was approved: {amount} euros will be paid to your account on {day}.
  The parcel with the new {thing} is at the front desk, please confirm the delivery with {first}.
  Reminder: the prize money of {amount} dollars must be spent before {day}, otherwise the offer expires.
  Please click the link to confirm your place at the {venue} dinner, it is free but limited to {few} guests.
  {first} {surname} has accepted our job offer! Salary forms and account details go to accounts by {day}.
call: NeurIPS has its call for papers out: abstracts are due {day}. Could we submit the {topic} work?
  Here is the NeurIPS call for papers, the page limit is {few}. Is the {topic} part ready for it?
neurips: {call} | {call}
  I would like to send the {topic} draft to NeurIPS. {surname} offers to read it before {day}.
  For NeurIPS we need {many} more runs of the {part}; I started them on node {few}, done by {day}.
  NeurIPS moved its deadline to {day} at {time}. The {topic} figure can wait until the {weekly}.
spam: {dear} {pitch} {push} | {pitch} {push} | {dear} {pitch} | {pitch}
dear: Dear customer, | Dear friend, | Hello {first}! | ATTENTION! | Dear {first} {surname}, | Good news!
push: Click here: {site} | Act now, offer ends {day}! | Reply today, no obligation.
  Limited time only! Order at {site} | 100% guaranteed or your money back.
  Free of charge for the next {many} customers! | Click {site} to confirm.
pills:
  {brand} capsules: sleep like a child for only ${few} a bottle, no prescription, shipped in a plain box.
  Doctors are amazed by {brand}. {many} capsules a month and your {ache} is gone, natural pills from {city}.
  Order {few} bottles of {brand} pills and get {many} free. Discount pharmacy, worldwide shipping.
  Still suffering from {ache}? The {brand} remedy works incredibly fast, says Dr {surname}.
loans:
  Bad credit? {brand} Finance approves loans up to ${amount} within {few} minutes, no questions asked.
  Your loan of ${amount} is pre-approved at {few}% interest. {brand} lenders wait for your signature.
  Consolidate your debts with {brand}: one low monthly payment of ${amount}, poor credit rating welcome.
  {first}, refinance the mortgage before rates rise! {brand} lends ${amount} to home owners in {city}.
crypto:
  {brand} coin rose {many}% since {day}. Our robot turned ${few} into ${amount}, open your wallet today.
  Double your bitcoin with {brand}: deposit ${amount}, withdraw twice as much within {few} hours.
  Secret of {surname} the investor: the {brand} token presale closes {day}, early wallets earn {many}%.
  Your wallet holds {many} unclaimed {brand} tokens. Connect it and claim profits of ${amount}.
parcels:
  Your parcel {ticket}{many} is held at our {city} depot. Pay the customs fee of ${few} to {brand} Express.
  {brand} courier could not deliver your package on {day}. Confirm the address and reschedule delivery.
  Final notice: shipment {ticket}{many} returns to sender in {few} hours unless postage of ${few} is paid.
  Track package {ticket}{many} with {brand} delivery: our driver missed you at {time}, a fee applies.
lottery:
  Your address won ${amount}000 in the {brand} lottery, draw {ticket}. Contact our claims agent {surname}.
  You are winner number {many} of the {brand} jackpot! Claim the prize of ${amount}000 before {day}.
  The {city} sweepstake drew your ticket {ticket}: a cash prize of ${amount}000. Send us your bank details.
  {brand} Lotto informs you of unclaimed winnings, batch {ticket}, sum ${amount}000, agent {first} {surname}.
jobs:
  Work from home for {brand}: earn ${amount} a week, {few} hours, no experience needed, training provided.
  {brand} hires mystery shoppers in {city}. Flexible hours, weekly salary ${amount}, start {day}.
  We saw your resume, {first}. The vacancy at {brand} pays ${amount} weekly for processing payments at home.
  Be your own boss! {surname} left the office and makes ${amount} monthly with the {brand} system.
diets:
  Lose {few} pounds by {day} with {brand} tea, without exercise, says {first} from {city}.
  The {brand} diet melts belly fat overnight. {many} slim women recommend it, trial pack ${few}.
  Eat {dish} and still lose weight: {brand} gummies burn calories while you sleep, ${few} a jar.
  Summer body in {few} days! {brand} shakes, keto approved, the weight stays off, trial pack ${amount}.
dressed:
  Hi {first}, are you at your desk? I need a quick favour before the {weekly}, {surname}
  {first}, I am stuck in {city} without my card, could you lend me {amount} euros until {day}? {surname}
  The draft for {venue} is shared with you: {site} Sign in with your password to read it. {first}
  Attached the invoice for the {thing}, {amount} euros, please pay by {day}. Thanks, {first} {surname}
  {hello} {meeting} Agenda: {site} | {hello} {reading} See {site} | {hello} {review} Log in at {site} {bye}
weekly: planning meeting | stand-up | project meeting | budget round | retrospective | seminar | group lunch
part: parser | scheduler | cache | tokenizer | sampler | loader | index | importer | retry logic
chore: see the dentist | bring the bike to repair | finish a review | call {surname} | fetch {child}
topic: topic models | variational inference | kernel methods | sparse attention | bandits | causal discovery
  calibration | gaussian processes | boosting | online learning | graph networks | active learning
  concept drift | label noise
venue: ICML | NIPS | ICML | NIPS | AISTATS | UAI | KDD | ACL
city: Lisbon | Montreal | Utrecht | Vienna | Kyoto | Nairobi | Bergen | Porto | Lima | Tallinn | Ghent | Turin
  Oslo | Leeds | Beijing | Sydney | Zagreb | Seville | Quebec | Lille | Hanoi | Austin | Cork | Geneva
  {Head}{mid}burg | {Head}{mid}ville
day: Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday | {month} {date} | {month} {date}
month: January | February | March | April | May | June | July | September | October | November
date: 2 | 3 | 5 | 7 | 8 | 11 | 12 | 14 | 17 | 19 | 20 | 23 | 24 | 26 | 28
time: 8:30 | 9:00 | 9:45 | 10:15 | 11:00 | 13:30 | 14:00 | 15:15 | 16:00 | 17:30 | noon
room: A12 | B07 | C31 | D20 | Turing | Noether | Lovelace | Hopper | Bayes
child: Mia | Jonas | the little one | Lena | Tom | our eldest | Nora | Emil
practice: football | choir | the piano lesson | swimming | the dentist | chess club | kindergarten
dish: lasagne | dumplings | a curry | pancakes | paella | ramen | plum cake | pierogi
thing: keyboard | bicycle lamp | blue umbrella | monitor | thermos | screwdriver | scarf | webcam | violin
ache: back pain | insomnia | snoring | joint pain | hair loss | tiredness | migraine
first: Anna | Ben | Chiara | David | Elif | Farid | Grace | Hugo | Ines | Jun | Katya | Luis | Maria | Nadia
  Omar | Priya | Quentin | Rosa | Sven | Tara | Uma | Victor | Wei | Ximena | Yusuf | Zoe | Amara | Kofi
surname: {Head}{tail} | {Head}{tail} | {Head}{mid}{tail} | {Head}{mid}{tail} | Okafor | Lindqvist | Tanaka
  Moreau | Silva | Novak
brand: {Head}{mid}{shine} | {Head}{shine}
site: {brand}.example | {Head}{mid}.example | docs.example
Head: Al | Bel | Cor | Dal | El | Fer | Gal | Hal | Ib | Jan | Kel | Lor | Mar | Nel | Or | Pal | Quin | Ros
  Sel | Tor | Ul | Ver | Wil | Zan
mid: a | be | da | do | e | ga | i | ka | la | le | mi | na | o | ra | ri | sa | ta | te | ve | vi
tail: sen | berg | man | ova | ski | son | ner | lund | dez | wick | strom | to | vic | mann | shi | ford
  well | gren | rez | thal
shine: max | tril | vita | gold | zen | prime | lux | dex | nova | fast | ora | plex
"""


def _rules(grammar: str) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    name = ""
    for line in grammar.strip().splitlines():
        texts = line
        if not line.startswith("  "):
            name, _, texts = line.partition(":")
        rules.setdefault(name, []).extend(text.strip() for text in texts.split(" | ") if text.strip())
    return rules


_RULES = _rules(_GRAMMAR)
_SLOT = re.compile(r"\{([^}]+)\}")


def _write(rule: str, bound: dict[str, str], draw: Callable[[], float]) -> str:
    """Return a random text of a rule; its slots are filled from left to right, first from `bound`."""

    def fill(slot: re.Match[str]) -> str:
        name = slot[1]
        if name in bound:
            return bound[name]
        if name == "amount":
            return str(10 + int(9_000 * draw() * draw()))  # small amounts are more frequent
        if name in {"few", "many"}:
            return str(2 + int((60 if name == "few" else 900) * draw()))
        return _write(name, bound, draw)

    alternatives = _RULES[rule]
    return _SLOT.sub(fill, alternatives[int(draw() * len(alternatives))])


def mailbox(seed: int = 0, n: int | None = None, *, neurips_at: int = 500) -> Iterator[Mail]:
    """Return the messages of the mailbox, in order.

    Parameters
    ----------
    seed : int
        The same seed gives the same stream, on every machine and version of Python.
    n : int or None
        Number of messages; ``None`` is without end.
    neurips_at : int
        Number of messages before the first one that contains "NeurIPS"; at least 0. The demo passes half of
        its messages.

    Yields
    ------
    dict
        ``id``, ``text`` of 5 to 40 words, and ``label``: ``"ham"``, ``"spam"`` or ``None``. At an event, such
        as a new campaign, also ``story``: a short line that the demo prints.

    Raises
    ------
    ValueError
        `n` or `neurips_at` is negative.

    Examples
    --------
    >>> [(mail["id"], mail["label"]) for mail in mailbox(n=2)]
    [('mail-0000001', 'ham'), ('mail-0000002', 'ham')]
    """
    if neurips_at < 0 or (n is not None and n < 0):
        raise ValueError(f"n and neurips_at must not be negative: n={n}, neurips_at={neurips_at}")
    return _mails(Random(seed).random, n, neurips_at)  # noqa: S311


def _mails(draw: Callable[[], float], n: int | None, neurips_at: int) -> Iterator[Mail]:
    turn, ends, fresh = int(draw() * len(CAMPAIGNS)), 0, False
    now = before = ("", "")  # a campaign and its brand
    for index in count() if n is None else range(n):
        if index == ends:
            before, now = now, (CAMPAIGNS[turn % len(CAMPAIGNS)], _write("brand", {}, draw))
            turn, ends, fresh = turn + 1, ends + _SHORTEST + int(_LONGER * draw()), True
        bound = {"ticket": f"T{1000 + index // 4 + int(40 * draw())}"}
        label: str | None = "ham"
        story = None
        if index == neurips_at:
            bound["subject"], rule = _write("call", bound, draw), "ham"
            story = "first mail about neurips"
        elif draw() < SPAM_SHARE:
            label, rule, story = "spam", "spam", f"a new spam campaign: {now[0]}" if fresh else None
            kind = 1.0 if fresh else draw()
            fresh, bound["brand"] = False, now[1]
            if kind < _DRESSED_SPAM:
                rule = "dressed"
            elif before[0] and kind < _DRESSED_SPAM + _LEFT_OVER:
                bound["brand"] = before[1]
                bound["pitch"] = _write(before[0], bound, draw)
            else:
                bound["pitch"] = _write(now[0], bound, draw)
        else:
            kind, rule = draw(), "ham"
            if kind < _AWKWARD_HAM:
                bound["subject"] = _write("awkward", bound, draw)
            elif kind < _AWKWARD_HAM + _NEURIPS_SHARE and index > neurips_at:
                bound["subject"] = _write("neurips", bound, draw)
        text = " ".join(_write(rule, bound, draw).split())
        silent = draw() < UNLABELLED_SHARE and story is None
        mail: Mail = {
            "id": f"mail-{index + 1:07d}",
            "text": text[0].upper() + text[1:],
            "label": None if silent else label,
        }
        if story is not None:
            mail["story"] = story
        yield mail
