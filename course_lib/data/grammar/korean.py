"""Korean word forms by rule: particles, verb endings, and tokens joined into spaced text.

A Korean sentence is kept as morphemes, written as grammars of Korean write them:

    noun, adverb ...   학생, 어제       a word of its own
    particle           은, 를, 에서     joined to the word before
    stem               읽-, 돕-         of a verb or an adjective, in its dictionary shape
    ending             -는다, -았다     joined to the stem before

The tokens already hold the right variant (은 or 는, -았다 or -었다): choosing it is a matter of the
word before.  How a stem changes when an ending joins it (돕- -았다 → 도왔다) is left to `text`.
"""

from functools import cache

LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
TAILS = ["", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"]

# After a final consonant, after a vowel.
PARTICLES = {"topic": ("은", "는"), "subject": ("이", "가"), "object": ("을", "를"), "and": ("과", "와"),
             "with": ("과", "와"), "by": ("으로", "로"), "at": ("에서", "에서"), "to": ("에", "에"),
             "for": ("에게", "에게")}
PLURAL = "들"
COPULAS = {"이다", "이었다", "이고", "이었고", "이지만", "이었지만"}
JOINED = COPULAS | {PLURAL} | {variant for pair in PARTICLES.values() for variant in pair}

# Stems that change before a vowel.  Every stem in 르 (but NOT_DOUBLED) and every ㅡ, ㄹ does so by rule.
IRREGULAR = {"ㅂ": {"돕", "곱", "귀엽", "무겁", "가볍", "아름답", "어렵", "쉽", "춥", "덥", "눕"},
             "ㄷ": {"듣", "걷", "싣", "깨닫"}, "ㅅ": {"짓", "낫", "붓", "잇", "긋"},
             "ㅎ": {"빨갛", "파랗", "노랗", "하얗", "까맣"}}
CLASS = {stem: consonant for consonant, stems in IRREGULAR.items() for stem in stems}
NOT_DOUBLED = {"따르", "치르", "들르"}
BRIGHT_P = {"돕", "곱"}                     # 도와, 고와; every other ㅂ stem takes 워: 아름다워
HAVING = ("있", "없")                        # 있는, 없는, 맛있는: -는, though they end in plain -다

CONTRACTED = {"ㅏㅏ": "ㅏ", "ㅓㅓ": "ㅓ", "ㅐㅓ": "ㅐ", "ㅔㅓ": "ㅔ", "ㅕㅓ": "ㅕ",
              "ㅗㅏ": "ㅘ", "ㅜㅓ": "ㅝ", "ㅣㅓ": "ㅕ"}
COLOURED = {"ㅏ": "ㅐ", "ㅓ": "ㅔ", "ㅑ": "ㅒ"}    # 빨갛 + 았 = 빨갰


@cache
def letters(syllable):
    """The letters of one syllable: (lead, vowel, tail), the tail '' where it is open.

    >>> letters("한"), letters("가")
    (('ㅎ', 'ㅏ', 'ㄴ'), ('ㄱ', 'ㅏ', ''))
    """
    number = ord(syllable) - ord("가")
    if not 0 <= number <= ord("힣") - ord("가"):
        raise ValueError(f"'{syllable}' is not a Hangul syllable")
    return LEADS[number // 588], VOWELS[number % 588 // 28], TAILS[number % 28]


def syllable(lead, vowel, tail=""):
    """One syllable of its letters, the reverse of `letters`.

    >>> syllable("ㅎ", "ㅏ", "ㄴ")
    '한'
    """
    return chr(ord("가") + LEADS.index(lead) * 588 + VOWELS.index(vowel) * 28 + TAILS.index(tail))


@cache
def particle(word, role):
    """The variant of a particle that follows `word`.  role: a key of PARTICLES.

    >>> particle("학생", "topic"), particle("나", "topic"), particle("연필", "by"), particle("붓", "by")
    ('은', '는', '로', '으로')
    """
    tail = letters(word[-1])[2]
    open_ended = tail == "" or (role == "by" and tail == "ㄹ")    # 연필로, 지하철로
    return PARTICLES[role][open_ended]


@cache
def ending(stem, form, past=False, adjective=False):
    """The ending, as a token, that follows `stem` in plain style.

    form: '다' ends the sentence, '고' (and), '지만' (but), '지' (before 않-), 'adnominal' (before a noun).
    adjective: the stem is an adjective's; 있, 없 and 아니 count as adjectives.

    >>> ending("읽", "다"), ending("가", "다"), ending("작", "다", adjective=True)
    ('-는다', '-ㄴ다', '-다')
    >>> ending("돕", "다", past=True), ending("팔", "adnominal"), ending("팔", "adnominal", past=True)
    ('-았다', '-는', '-ㄴ')
    """
    closed = letters(stem[-1])[2] not in ("", "ㄹ")
    if form == "adnominal":
        if stem.endswith(HAVING) or not (past or adjective):
            return "-는"
        return "-은" if closed else "-ㄴ"
    if past:
        return "-" + _past(stem) + form
    if form == "다" and not adjective:
        return "-는다" if closed else "-ㄴ다"
    return "-" + form


def join(stem, ending):
    """Stem and ending as written, both without their hyphens.

    >>> [join("돕", "았다"), join("팔", "는"), join("부르", "었다"), join("듣", "은"), join("쓰", "었다")]
    ['도왔다', '파는', '불렀다', '들은', '썼다']
    """
    lead, vowel, tail = letters(stem[-1])
    if ending[0] == "ㄴ" and tail in ("", "ㄹ"):                        # 가 + ㄴ다, 팔 + ㄴ
        return stem[:-1] + syllable(lead, vowel, "ㄴ") + ending[1:]
    if ending[0] == "는" and tail == "ㄹ":                              # 파는
        return stem[:-1] + syllable(lead, vowel) + ending
    if ending[0] == "은":
        return _join_un(stem, ending)
    if ending[0] in "았었였":
        return _join_past(stem, ending)
    return stem + ending


def text(tokens):
    """Korean tokens as a sentence with its spaces.

    >>> text(["나", "는", "학생", "이다"]), text(["그들", "은", "고양이", "이다"])
    ('나는 학생이다', '그들은 고양이다')
    >>> text(["책", "을", "팔-", "-는", "소녀"]), text(["친구", "를", "돕-", "-았다"])
    ('책을 파는 소녀', '친구를 도왔다')
    """
    words = []
    for token in tokens:
        if words and token in COPULAS:
            words[-1] += _copula(words[-1], token)
        elif words and token in JOINED:
            words[-1] += token
        elif words and token[0] == "-" and words[-1][-1] == "-":
            words[-1] = join(words[-1][:-1], token[1:])
        else:
            words.append(token)
    return " ".join(words)


def _copula(word, copula):
    # After a vowel: 의사다, 의사였다; 의사이고 and 의사이지만 stay, as careful writing has them.
    if not "가" <= word[-1] <= "힣" or letters(word[-1])[2]:
        return copula
    return "였" + copula[2:] if copula[1] == "었" else copula.replace("이다", "다")


def _past(stem):
    # Vowel harmony: 았 after a bright vowel, 었 after the others, 였 after 하.
    if stem[-1] == "하":
        return "였"
    if CLASS.get(stem) == "ㅂ":
        return "았" if stem in BRIGHT_P else "었"
    _, vowel, tail = letters(stem[-1])
    if vowel == "ㅡ" and not tail and len(stem) > 1:     # the ㅡ falls: 바쁘, 모르 go by the syllable before
        vowel = letters(stem[-2])[1]
    return "았" if vowel in "ㅏㅑㅗ" else "었"


def _join_un(stem, ending):
    lead, vowel, tail = letters(stem[-1])
    changed = {"ㅂ": syllable(lead, vowel) + "운", "ㄷ": syllable(lead, vowel, "ㄹ") + "은",
               "ㅅ": syllable(lead, vowel) + "은", "ㅎ": syllable(lead, vowel, "ㄴ")}
    last = changed.get(CLASS.get(stem))
    return stem + ending if last is None else stem[:-1] + last + ending[1:]


def _join_past(stem, ending):
    lead, vowel, tail = letters(stem[-1])
    head, rest, bright = stem[:-1], ending[1:], "ㅏ" if ending[0] == "았" else "ㅓ"
    kind = CLASS.get(stem)
    if stem[-1] == "하":
        return head + "했" + rest
    if kind == "ㅂ":
        return head + syllable(lead, vowel) + ("왔" if bright == "ㅏ" else "웠") + rest
    if kind in ("ㄷ", "ㅅ"):                                             # 들었다; 지었다 is not contracted
        return head + syllable(lead, vowel, "ㄹ" if kind == "ㄷ" else "") + ending
    if kind == "ㅎ":
        return head + syllable(lead, COLOURED[vowel], "ㅆ") + rest
    if stem[-1] == "르" and head and stem not in NOT_DOUBLED:            # 부르 → 불렀, 모르 → 몰랐
        before = letters(head[-1])
        return head[:-1] + syllable(before[0], before[1], "ㄹ") + syllable("ㄹ", bright, "ㅆ") + rest
    if tail or (vowel in "ㅗㅜ" and not head and lead != "ㅇ") or stem == "아니":
        return stem + ending                                            # 보았다, 주었다, 아니었다
    if vowel == "ㅡ":
        return head + syllable(lead, bright, "ㅆ") + rest
    contracted = CONTRACTED.get(vowel + bright)
    return head + syllable(lead, contracted, "ㅆ") + rest if contracted else stem + ending
