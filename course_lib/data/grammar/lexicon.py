"""The words of the English to Korean grammar as tables, and which of them make sense together.

A group in the columns below is a noun, or a tag that a noun carries.
"""

# singular  plural (- for none)  Korean  counter (- for none)  tags
NOUNS = """
girl girls 소녀 명 person young         | boy boys 소년 명 person young
child children 아이 명 person young     | man men 남자 명 person grown
woman women 여자 명 person grown        | friend friends 친구 명 person grown own ours
student students 학생 명 person job     | teacher teachers 교사 명 person grown job
doctor doctors 의사 명 person grown job | farmer farmers 농부 명 person grown job
singer singers 가수 명 person grown job | Minsu - 민수 - name
Sujin - 수진 - name                     | Yuna - 유나 - name
cat cats 고양이 마리 animal pet own ours | dog dogs 개 마리 animal pet own ours
bird birds 새 마리 animal               | horse horses 말 마리 animal
rabbit rabbits 토끼 마리 animal pet     | bear bears 곰 마리 animal
book books 책 권 text goods own         | letter letters 편지 통 text
poem poems 시 - text                    | story stories 이야기 - text
song songs 노래 - -                     | picture pictures 그림 장 goods own
bread - 빵 - food mass                  | rice - 밥 - food mass
apple apples 사과 개 food               | egg eggs 달걀 개 food
potato potatoes 감자 개 food            | cake - 케이크 - food
water - 물 - drink mass                 | milk - 우유 - drink mass
coffee - 커피 - drink mass              | hat hats 모자 개 goods own
bag bags 가방 개 goods own              | box boxes 상자 개 goods
chair - 의자 - goods own                | umbrella - 우산 - goods own
flower flowers 꽃 송이 -                | door - 문 - -
window - 창문 - -                       | pencil - 연필 - tool
brush - 붓 - tool                       | house - 집 - own ours
park - 공원 - -                         | library - 도서관 - -
market - 시장 - -                       | garden - 정원 - own ours
hospital - 병원 - -                     | forest - 숲 - -
kitchen - 부엌 - -                      | school - 학교 - bare
bus - 버스 - bare vehicle               | train - 기차 - bare vehicle
bicycle - 자전거 - bare vehicle
"""

# English  Korean stem : nouns that it can describe
ADJECTIVES = """
small 작 : animal goods house garden park   | big 크 : animal goods house garden park
pretty 예쁘 : flower hat bag picture        | beautiful 아름답 : park garden forest song poem picture
cute 귀엽 : pet bird child                  | kind 친절하 : person
happy 행복하 : person                       | sad 슬프 : young friend song poem story
busy 바쁘 : grown student                   | young 젊 : man woman teacher doctor farmer singer
fast 빠르 : horse dog rabbit                | red 빨갛 : hat bag umbrella flower apple chair
light 가볍 : bag box chair umbrella          | expensive 비싸 : hat bag chair umbrella picture
heavy 무겁 : box bag chair                  | delicious 맛있 : food
interesting 재미있 : book story             | long 길 : letter poem story song
quiet 조용하 : library park forest
"""

# base  third person  past  Korean stem  kind : subjects : objects : places : further parts
# A second line of the same verb gives another use of it.  State verbs take no adverb, and their
# relative clauses stand in the present.
VERBS = """
read reads read 읽 plain : person : text : library park garden school kitchen : often slowly friend
write writes wrote 쓰 plain : person : text : library garden school : often slowly tool
buy buys bought 사 plain : person : goods food milk coffee : market : often friend
sell sells sold 팔 plain : man woman farmer friend : goods food milk flower : market : often
eat eats ate 먹 plain : person : food : kitchen garden park school : slowly quickly friend
eat : pet horse : apple potato bread : garden : quickly
drink drinks drank 마시 plain : person : drink : kitchen garden park : often slowly friend
drink : animal : water milk : garden : quickly
make makes made 만들 plain : person : bread cake : kitchen : often friend
make : person : bag hat box chair : : slowly
draw draws drew 그리 plain : person : animal flower house child : park garden school : often slowly tool
see sees saw 보 plain : person : person animal : park market forest library school : often
see : animal : person animal
know knows knew 알 state : person : person song story
like likes liked 좋아하 like : person : animal food drink song story poem flower
love loves loved 사랑하 state : person : person pet
help helps helped 돕 plain : person : person : hospital school market library : often
call calls called 부르 plain : person : person pet : : often quickly
listen listens listened 듣 plain to : person : song story : park garden kitchen : often friend
build builds built 짓 plain : man woman farmer friend : house : : slowly
open opens opened 열 plain : person : door window box bag : : often slowly quickly
close closes closed 닫 plain : person : door window box bag : : often slowly quickly
catch catches caught 잡 plain : cat dog : bird rabbit : garden forest : often quickly
catch : bear : rabbit bird : forest : quickly
bite bites bit 물 plain : dog bear cat : person animal : : often
meet meets met 만나 plain : person : person : park library market school hospital : often
give gives gave 주 give : person : goods letter flower apple egg : : often
give : person : milk bread apple potato : : often pet
sleep sleeps slept 자 plain : person animal : : house garden park : often
run runs ran 달리 plain : person horse dog rabbit : : park forest garden : often quickly
sing sings sang 노래하 plain : person : : park garden school kitchen : often friend
sing : bird : : garden forest : often
cry cries cried 울 plain : person : : kitchen garden school park hospital : often
walk walks walked 걷 plain : person : : park forest garden : often slowly quickly friend
work works worked 일하 plain : grown : : hospital market school library garden kitchen : often friend
play plays played 놀 plain : young pet : : park garden forest school : often
play : young : : park garden forest school : often friend
live lives lived 살 live : person : : house forest : friend
live : animal : : forest garden
go goes went 가 go : person : : park library market hospital forest school : often friend vehicle
"""

# place : who and what one finds there
PLACES = """
park : person animal flower         | library : person book
market : person food goods milk     | garden : animal flower
hospital : doctor child man woman   | forest : animal flower
kitchen : food drink cat chair      | school : student teacher
"""
AT = {"market", "hospital", "school"}                   # 'at the market', but 'in the park'
DETERMINERS = {"that": "그", "my": "내", "our": "우리"}  # 'a' and 'the' have no word in Korean
NUMBERS = {"two": "두", "three": "세"}
TIMES = {("yesterday",): "어제", ("last", "night"): "어젯밤", ("every", "day"): "매일"}
ADVERBS = {"often": "자주", "always": "항상", "slowly": "천천히", "quickly": "빨리"}
MANNERS = {"slowly", "quickly"}                         # these stand beside the Korean verb
# subject object Korean, Korean before 가, how the verb agrees
PRONOUNS = """
I me 나 내 I     | you you 너 네 many   | he him 그 그 one
she her 그녀 그녀 one | we us 우리 우리 many | they them 그들 그들 many
"""
BE = {("I", False): "am", ("one", False): "is", ("many", False): "are",
      ("I", True): "was", ("one", True): "was", ("many", True): "were"}
