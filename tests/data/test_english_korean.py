"""The grammar: its Korean, its alignments, one translation for each sentence, and the way back."""

import doctest
import itertools
from collections import Counter

import pytest
import torch

from course_lib.data import english_korean
from course_lib.data.english_korean import ENGLISH, KOREAN, gloss, pairs, sample, text, tokenise, translate
from course_lib.data.grammar import gloss as glosses
from course_lib.data.grammar import korean
from course_lib.data.grammar.korean import JOINED, ending, join, particle
from course_lib.data.grammar.parser import Parser
from course_lib.data.grammar.sentences import assemble, piece

ARTICLES = {"a", "an", "the"}
# English words that need no sure partner: their sense is in an ending, or in the word beside them.
HELPERS = ARTICLES | {"who", "which", "there", "to", "am", "is", "are", "was", "were", "do", "does", "did"}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def many():
    """50,000 pairs: most of them short, where two draws can be the same sentence, some of every sort."""
    return [*pairs(43_000, generator(1), longest=8), *pairs(4000, generator(2)),
            *pairs(3000, generator(3), longest=25, depth=3)]


# Word forms.  Columns: present, past, before a noun in the present and in the past, -고 past, -지만, -지 않다

VERB_FORMS = """
읽 읽는다 읽었다 읽는 읽은 읽었고 읽지만
먹 먹는다 먹었다 먹는 먹은 먹었고 먹지만
잡 잡는다 잡았다 잡는 잡은 잡았고 잡지만
닫 닫는다 닫았다 닫는 닫은 닫았고 닫지만
받 받는다 받았다 받는 받은 받았고 받지만
웃 웃는다 웃었다 웃는 웃은 웃었고 웃지만
앉 앉는다 앉았다 앉는 앉은 앉았고 앉지만
찾 찾는다 찾았다 찾는 찾은 찾았고 찾지만
돕 돕는다 도왔다 돕는 도운 도왔고 돕지만
눕 눕는다 누웠다 눕는 누운 누웠고 눕지만
듣 듣는다 들었다 듣는 들은 들었고 듣지만
걷 걷는다 걸었다 걷는 걸은 걸었고 걷지만
짓 짓는다 지었다 짓는 지은 지었고 짓지만
낫 낫는다 나았다 낫는 나은 나았고 낫지만
팔 판다 팔았다 파는 판 팔았고 팔지만
알 안다 알았다 아는 안 알았고 알지만
열 연다 열었다 여는 연 열었고 열지만
물 문다 물었다 무는 문 물었고 물지만
놀 논다 놀았다 노는 논 놀았고 놀지만
살 산다 살았다 사는 산 살았고 살지만
울 운다 울었다 우는 운 울었고 울지만
만들 만든다 만들었다 만드는 만든 만들었고 만들지만
쓰 쓴다 썼다 쓰는 쓴 썼고 쓰지만
끄 끈다 껐다 끄는 끈 껐고 끄지만
따르 따른다 따랐다 따르는 따른 따랐고 따르지만
부르 부른다 불렀다 부르는 부른 불렀고 부르지만
모르 모른다 몰랐다 모르는 모른 몰랐고 모르지만
고르 고른다 골랐다 고르는 고른 골랐고 고르지만
가 간다 갔다 가는 간 갔고 가지만
오 온다 왔다 오는 온 왔고 오지만
보 본다 보았다 보는 본 보았고 보지만
주 준다 주었다 주는 준 주었고 주지만
자 잔다 잤다 자는 잔 잤고 자지만
사 산다 샀다 사는 산 샀고 사지만
서 선다 섰다 서는 선 섰고 서지만
배우 배운다 배웠다 배우는 배운 배웠고 배우지만
쉬 쉰다 쉬었다 쉬는 쉰 쉬었고 쉬지만
뛰 뛴다 뛰었다 뛰는 뛴 뛰었고 뛰지만
그리 그린다 그렸다 그리는 그린 그렸고 그리지만
마시 마신다 마셨다 마시는 마신 마셨고 마시지만
달리 달린다 달렸다 달리는 달린 달렸고 달리지만
만나 만난다 만났다 만나는 만난 만났고 만나지만
보내 보낸다 보냈다 보내는 보낸 보냈고 보내지만
켜 켠다 켰다 켜는 켠 켰고 켜지만
일하 일한다 일했다 일하는 일한 일했고 일하지만
좋아하 좋아한다 좋아했다 좋아하는 좋아한 좋아했고 좋아하지만
""".split("\n")[1:-1]

ADJECTIVE_FORMS = """
작 작다 작았다 작은 작았고 작지만
젊 젊다 젊었다 젊은 젊었고 젊지만
좋 좋다 좋았다 좋은 좋았고 좋지만
크 크다 컸다 큰 컸고 크지만
예쁘 예쁘다 예뻤다 예쁜 예뻤고 예쁘지만
바쁘 바쁘다 바빴다 바쁜 바빴고 바쁘지만
슬프 슬프다 슬펐다 슬픈 슬펐고 슬프지만
빠르 빠르다 빨랐다 빠른 빨랐고 빠르지만
귀엽 귀엽다 귀여웠다 귀여운 귀여웠고 귀엽지만
무겁 무겁다 무거웠다 무거운 무거웠고 무겁지만
아름답 아름답다 아름다웠다 아름다운 아름다웠고 아름답지만
길 길다 길었다 긴 길었고 길지만
빨갛 빨갛다 빨갰다 빨간 빨갰고 빨갛지만
하얗 하얗다 하얬다 하얀 하얬고 하얗지만
비싸 비싸다 비쌌다 비싼 비쌌고 비싸지만
맛있 맛있다 맛있었다 맛있는 맛있었고 맛있지만
재미있 재미있다 재미있었다 재미있는 재미있었고 재미있지만
친절하 친절하다 친절했다 친절한 친절했고 친절하지만
행복하 행복하다 행복했다 행복한 행복했고 행복하지만
없 없다 없었다 없는 없었고 없지만
아니 아니다 아니었다 아닌 아니었고 아니지만
""".split("\n")[1:-1]


@pytest.mark.parametrize("row", VERB_FORMS, ids=lambda row: row.split()[0])
def test_verb_forms(row):
    stem, *forms = row.split()
    endings = [ending(stem, "다"), ending(stem, "다", past=True), ending(stem, "adnominal"),
               ending(stem, "adnominal", past=True), ending(stem, "고", past=True), ending(stem, "지만")]
    assert [text([stem + "-", one]) for one in endings] == forms


@pytest.mark.parametrize("row", ADJECTIVE_FORMS, ids=lambda row: row.split()[0])
def test_adjective_forms(row):
    stem, *forms = row.split()
    endings = [ending(stem, "다", adjective=True), ending(stem, "다", True, True),
               ending(stem, "adnominal", adjective=True), ending(stem, "고", True, True),
               ending(stem, "지만", adjective=True)]
    assert [text([stem + "-", one]) for one in endings] == forms


def test_particles_go_by_the_final_consonant():
    roles = ["topic", "subject", "object", "and", "by"]
    expected = {"나": "는 가 를 와 로", "학생": "은 이 을 과 으로", "연필": "은 이 을 과 로",
                "붓": "은 이 을 과 으로", "버스": "는 가 를 와 로", "들": "은 이 을 과 로"}
    for word, variants in expected.items():
        assert [particle(word, role) for role in roles] == variants.split(), word


def test_the_copula_contracts_after_a_vowel():
    assert text(["의사", "이다"]) == "의사다" and text(["학생", "이다"]) == "학생이다"
    assert text(["의사", "이었다"]) == "의사였다" and text(["학생", "이었지만"]) == "학생이었지만"
    assert text(["의사", "이었고"]) == "의사였고" and text(["의사", "이고"]) == "의사이고"


def test_text_survives_whatever_a_model_says():
    for tokens in itertools.product([*KOREAN[::9], "<unk>", "이다", "-ㄴ다"], repeat=2):
        assert text(tokens)
    assert text([]) == ""


# Sentences, translated by hand

SENTENCES = {
    "They are cats": "그들은 고양이다",
    "I am a student": "나는 학생이다",
    "I go to school": "나는 학교에 간다",
    "He is not a doctor": "그는 의사가 아니다",
    "The girl read an interesting book": "소녀는 재미있는 책을 읽었다",
    "A dog bit the boy": "개가 소년을 물었다",
    "She likes cats": "그녀는 고양이를 좋아한다",
    "The children who the teacher helped sang": "교사가 도운 아이들은 노래했다",
    "The book which I bought is expensive": "내가 산 책은 비싸다",
    "The farmer who sells apples lives in a small house": "사과를 파는 농부는 작은 집에 산다",
    "The man does not know that woman": "남자는 그 여자를 모른다",
    "We did not drink the milk": "우리는 우유를 마시지 않았다",
    "There are two cats in the garden": "정원에 고양이 두 마리가 있다",
    "There is no water in the kitchen": "부엌에 물이 없다",
    "Minsu gave three red flowers to my friend": "민수는 내 친구에게 빨간 꽃 세 송이를 주었다",
    "Sujin draws a beautiful bird with a pencil in the park": "수진은 공원에서 연필로 아름다운 새를 그린다",
    "Yuna wrote a long letter with a brush": "유나는 붓으로 긴 편지를 썼다",
    "The woman went to the market by bus": "여자는 버스로 시장에 갔다",
    "The boy and the girl listened to a sad song": "소년과 소녀는 슬픈 노래를 들었다",
    "Last night the singer slowly closed the window": "가수는 어젯밤 창문을 천천히 닫았다",
    "Every day you walk with the dogs in the forest": "너는 매일 개들과 함께 숲에서 걷는다",
    "He opened the door and called me": "그는 문을 열고 나를 불렀다",
    "She was busy but they were happy": "그녀는 바빴지만 그들은 행복했다",
    "I built a house and my friends often helped us": "나는 집을 지었고 내 친구들은 자주 우리를 도왔다",
    "She is the doctor who helped me": "그녀는 나를 도운 의사다",
    "You are my friend and she is a singer": "너는 내 친구이고 그녀는 가수다",
    "The cat which the girl who sings loves is cute": "노래하는 소녀가 사랑하는 고양이는 귀엽다",
    "Those students do not read that book": "그 학생들은 그 책을 읽지 않는다",
    "The rabbits saw a bear and two horses": "토끼들은 곰과 말 두 마리를 보았다",
}


@pytest.mark.parametrize("english", SENTENCES)
def test_sentences_by_hand(english):
    assert text(translate(english).korean) == SENTENCES[english]


# The language as a whole

def test_one_sentence_has_one_translation(many):
    seen = {}
    for pair in many:
        assert seen.setdefault(pair.english, pair) == pair, " ".join(pair.english)
    assert 35_000 < len(seen) < 49_000


def test_vocabularies_are_what_occurs(many):
    assert {word for pair in many for word in pair.english} == set(ENGLISH)
    assert {token for pair in many for token in pair.korean} == set(KOREAN)
    assert 160 <= len(KOREAN) < len(ENGLISH) <= 250
    assert not {token for token in KOREAN if any(letter.isascii() and letter != "-" for letter in token)}


def test_every_particle_and_ending_suits_the_word_before(many):
    stems = {token for token in KOREAN if token[-1] == "-"}
    for pair in many[::8]:
        for before, token in itertools.pairwise(pair.korean):
            assert (before in stems) == (token[0] == "-"), text(pair.korean)
            if token in JOINED:
                fits = [variants for variants in korean.PARTICLES.values() if token in variants]
                assert not fits or any(token == particle(before, role) for role, variants in
                                       korean.PARTICLES.items() if variants in fits), text(pair.korean)
        assert pair.korean[-1].endswith("다") and not text(pair.korean).count("-")


def test_alignments_are_sound(many):
    for pair in many[::8]:
        n, m = len(pair.korean), len(pair.english)
        assert pair.sure <= pair.possible
        assert all(0 <= i < n and 0 <= j < m for i, j in pair.possible)
        assert {i for i, _ in pair.possible} == set(range(n))
        linked, sure = {j for _, j in pair.possible}, {j for _, j in pair.sure}
        for j, word in enumerate(pair.english):
            assert (j in linked) == (word not in ARTICLES), (word, pair)
            assert j in sure or word in HELPERS, (word, pair)


def test_sure_links_join_words_that_mean_the_same():
    # Whatever the sentence, a Korean word is surely linked to few English words: its dictionary.
    partners = {}
    for pair in pairs(2000, generator(7)):
        for i, j in pair.sure:
            partners.setdefault(pair.korean[i], Counter())[pair.english[j]] += 1
    assert set(partners["고양이"]) == {"cat", "cats"} and set(partners["돕-"]) == {"help", "helps", "helped"}
    assert set(partners["에서"]) == {"in", "at"} and set(partners["않-"]) == {"not"}
    assert set(partners["-지만"]) == {"but"} and set(partners["어젯밤"]) == {"last", "night"}
    assert set(partners["이다"]) == {"am", "is", "are"}
    assert set(partners["그"]) == {"he", "him", "that", "those"}
    assert not {"는", "이", "을", "-ㄴ다", "-은", "명"} & set(partners)


def test_alignment_of_the_two_sentences_of_lesson_4():
    pair = translate("I am a student")
    assert pair.english == ("I", "am", "a", "student") and pair.korean == ("나", "는", "학생", "이다")
    assert pair.sure == {(0, 0), (2, 3), (3, 1)} and pair.possible - pair.sure == {(1, 0)}
    pair = translate("They are cats")
    assert pair.korean == ("그들", "은", "고양이", "이다") and pair.sure == {(0, 0), (2, 2), (3, 1)}


def test_translate_is_the_way_back():
    for depth in (0, 1, 3):
        for pair in pairs(150, generator(depth), lengths="uniform", depth=depth):
            assert translate(pair.english) == pair


def test_every_sentence_is_read_in_one_way_only():
    for pair in pairs(250, generator(4), lengths="uniform", depth=2):
        trees = Parser(pair.english).sentence()
        written = [assemble([piece(clause, form) for clause, form in tree]) for tree in trees]
        assert [one for one in written if one.english == pair.english] == [pair], " ".join(pair.english)


# Lengths and seeds

def test_lengths():
    for length in (3, 4, 7, 12, 21, 40):
        assert len(sample(generator(), length).english) == length
    natural = [len(pair.english) for pair in pairs(1000, generator())]
    assert min(natural) < 5 and max(natural) <= 40 and 11 < sum(natural) / 1000 < 13
    uniform = Counter(len(pair.english) for pair in pairs(950, generator(), lengths="uniform"))
    assert set(uniform) == set(range(3, 41)) and min(uniform.values()) > 8
    assert {len(pair.english) for pair in pairs(200, generator(), 7, 9)} == {7, 8, 9}


def test_depth():
    def relatives(depth):
        drawn = pairs(300, generator(), depth=depth)
        return sum(word in ("who", "which") for pair in drawn for word in pair.english)
    assert relatives(0) == 0 < 50 < relatives(1) < relatives(3)


def test_the_seed_decides_everything():
    assert pairs(50, generator(3)) == pairs(50, generator(3)) != pairs(50, generator(4))
    assert sample(generator(3)) == sample(generator(3))
    shared = generator(3)
    assert pairs(50, shared) != pairs(50, shared)


@pytest.mark.parametrize("wrong", [dict(shortest=2), dict(shortest=9, longest=8), dict(longest=101)])
def test_impossible_lengths(wrong):
    with pytest.raises(ValueError, match="within 3 to 100"):
        pairs(1, generator(), **wrong)
    with pytest.raises(ValueError, match="'natural' or 'uniform', got 'long'"):
        pairs(1, generator(), lengths="long")


# What a learner types

def test_tokenise():
    assert tokenise("I don't know MINSU!") == ("I", "do", "not", "know", "Minsu")
    assert tokenise(" “The girl” isn’t busy; but - ") == ("the", "girl", "is", "not", "busy", "but")
    assert translate("they are cats.") == translate(["they", "are", "cats"])


@pytest.mark.parametrize("sentence, message", {
    "the docter helps a zebra": "'docter' is not in the vocabulary; near it: doctor.*; 'zebra' is not",
    "the girl listen to the song": "it would say 'the girl listens to the song'",
    "I eat a apple": "it would say 'I eat an apple'",
    "I see cat": "it would say 'I see a cat'",
    "I go to the school": "it would say 'I go to school'",
    "the girl read in the park": "understood as far as 'the girl read'",
    "we run in the park with Minsu": "it would say 'we run with Minsu in the park'",
    "the girl who sings": "understood as far as 'the girl who sings'",
    "?!": "no words",
}.items())
def test_errors_help(sentence, message):
    with pytest.raises(ValueError, match=message):
        translate(sentence)


def test_read_without_s_is_the_past():
    # The present would be the same English sentence with another translation.
    assert text(translate("they read a book").korean) == "그들은 책을 읽었다"
    assert text(translate("she reads a book").korean) == "그녀는 책을 읽는다"
    assert text(translate("they do not read a book").korean) == "그들은 책을 읽지 않는다"


def test_join_keeps_regular_stems():
    assert join("입", "었다") == "입었다" and join("씻", "은") == "씻은" and join("믿", "었다") == "믿었다"


@pytest.mark.parametrize("english, word_by_word", [
    ("they are cats", "they-TOPIC cat-be"),
    ("the teacher who likes cats reads a book", "cat-OBJ like-ing teacher-TOPIC book-OBJ read"),
    ("our friend went to the market but she did not work", "our friend-TOPIC market-to go-PAST-but "
     "she-TOPIC work not-PAST"),
    ("he sees three dogs", "he-TOPIC dog three CL-OBJ see"),
    ("that sad boy works with her in the kitchen", "that sad boy-TOPIC she-with together kitchen-at work")])
def test_a_gloss_says_korean_word_by_word(english, word_by_word):
    assert gloss(translate(english).korean) == word_by_word


def test_every_token_has_a_gloss_wherever_a_model_puts_it():
    for token in KOREAN:
        assert isinstance(gloss([token, token]), str)


@pytest.mark.parametrize("module", [english_korean, korean, glosses])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0
