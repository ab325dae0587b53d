"""Lark grammars with texts that they match and texts that they do not.

What is right was found with the PyPI package lark (1.3.1), by its Earley parser with the lexer "dynamic_complete",
which tries every length that a terminal can have: a text is in "yes" where the grammar's language has it, whatever
a lexer would have made of it. `python lark_cases.py` asks lark again about all of them.

Left out, for there lark itself is not the language: %ignore takes the longest text that it can and no other; of one
regular expression's alternatives, and behind its lazy counts, lark follows Python's first match only. The two of
`common` that are written with lazy counts are here as everybody means them: ESCAPED_STRING ends at the first '"' that
is not escaped, C_COMMENT at the first "*/". Terminals that match nothing are not here, for that lexer refuses them.
"""

CASES = [
    # Literals, and the characters in them.
    {
        "name": "sequence_and_choice",
        "grammar": 'start: "yes" | "no" "!" | "maybe" "so" "?"',
        "yes": ["yes", "no!", "maybeso?"],
        "no": ["", "no", "yes!", "maybe", "maybe so?", "Yes", " yes", "yesno!"],
    },
    {
        "name": "literal_escapes",
        "grammar": r'start: "a\tb\n" "\"quoted\"" "\\" "\x41\u00e9\U0001f642"',
        "yes": ['a\tb\n"quoted"\\A\u00e9\U0001f642'],
        "no": [
            "",
            'a\\tb\\n"quoted"\\A\u00e9\U0001f642',
            'a\tb\n"quoted"\\\\A\u00e9\U0001f642',
            "a\tb\nquoted\\A\u00e9\U0001f642",
            'a\tb\n"quoted"\\A\u00e9',
            'a\tb\n"quoted"\\Ae\U0001f642',
        ],
    },
    {
        "name": "escaped_backslash_before_a_letter",
        "grammar": r'start: "\\n" | "\\\\t" | "\\\""',
        "yes": ["\\n", "\\\\t", '\\"'],
        "no": ["\n", "\t", "\\\n", "n", '"', "\\t", "\\\\n", "\\"],
    },
    {
        "name": "literals_beyond_ascii",
        "grammar": 'start: ("é" | "日本" | "🙂")+',
        "yes": ["é", "日本", "🙂", "é🙂日本é"],
        "no": ["", "e", "日", "本日", "🙃", "e\u0301", "é "],
    },
    {
        "name": "marks_of_the_syntax_in_literals",
        "grammar": """start: "#" "//" "|" "->" "%" "it's" ":" "/*" "[" "]" "{" "~" """,
        "yes": ["#//|->%it's:/*[]{~"],
        "no": ["", "#", "#//", "#//|->%its:/*[]{~", "# // | -> % it's : /* [ ] { ~", "#//|->%it's:/*[]{"],
    },
    {
        "name": "literal_without_regard_to_case",
        "grammar": 'start: "select"i " " "X" "e2"i',
        "yes": ["select Xe2", "SELECT XE2", "SeLeCt XE2", "selecT Xe2"],
        "no": ["", "select xe2", "SELECT x", "select X", "selectXe2", "selet Xe2"],
    },
    {
        "name": "literal_without_regard_to_case_beyond_ascii",
        "grammar": 'start: "né"i "ж"i',
        "yes": ["néж", "NÉЖ", "NéЖ", "nÉж"],
        "no": ["", "ne", "neж", "NEЖ", "né", "nеж"],
    },
    {
        "name": "ranges",
        "grammar": r'start: "a".."f" "0".."9" ("α".."ω" | "A".."A")',
        "yes": ["a0α", "f9ω", "c5λ", "b7A"],
        "no": ["", "a0", "g0α", "a:α", "A0α", "a0B", "a0Ω", "a00α"],
    },
    {
        "name": "ranges_between_marks",
        "grammar": r'start: ("]".."a" | "*".."/" | "\x1e".."!")+',
        "yes": ["]", "^", "_", "`", "a", "*+,-./", "\x1e !", "]-!"],
        "no": ["", "b", "\\", "[", "0", ")", '"', "]b"],
    },
    # Regular expressions.
    {
        "name": "regex_classes",
        "grammar": r"start: /[a-c_]+/ /[^a-z\n]/ /[\-\]]?x/",
        "yes": ["a0x", "abc_ x", "_-]x", "bAx", "c\tx", "a_é-x"],
        "no": ["", "ax", "abx", "0x", "a\nx", "a00x", "a0-]x", "a0", "d0x"],
    },
    {
        "name": "regex_counts",
        "grammar": r"start: /a{2}b{1,3}c{2,}d?e*f+/",
        "yes": ["aabccf", "aabbbccccdeeeff", "aabccdf", "aabbccef"],
        "no": ["", "abccf", "aaabccf", "aaccf", "aabbbbccf", "aabcf", "aabcc", "aabccddf", "aabccfe"],
    },
    {
        "name": "regex_groups_and_choice",
        "grammar": r"start: /(ab|cd)+(?:-(?P<year>\d\d))?/",
        "yes": ["ab", "cd", "abcdab", "cd-07", "abab-99"],
        "no": ["", "a", "abc", "ab-", "ab-0", "ab-077", "-07", "ab07"],
    },
    {
        "name": "regex_escapes",
        "grammar": r"start: /a\/b\.\*\\\t\x41\u00e9\[\"'/",
        "yes": ["a/b.*\\\tA\u00e9[\"'"],
        "no": ["", "a\\/b.*\\\tA\u00e9[\"'", "a/bx*\\\tA\u00e9[\"'", "a/b.*\\\tA\u00e9[\"", "a/b.*\\tA\u00e9[\"'"],
    },
    {
        "name": "regex_dot",
        "grammar": r"start: /a.b/ | /x.y/s",
        "yes": ["a-b", "a\rb", "aéb", "a🙂b", "x-y", "x\ny", "x🙂y"],
        "no": ["", "a\nb", "ab", "xy", "a--b", "x\n\ny", "A-b"],
    },
    {
        "name": "regex_without_regard_to_case",
        "grammar": r"start: /[a-c]+x/i | /no/ | /(?i:y)es/",
        "yes": ["ax", "AX", "aBcX", "no", "yes", "Yes"],
        "no": ["", "NO", "No", "dx", "x", "YES", "yEs", "abc"],
    },
    {
        "name": "regex_flags_together",
        "grammar": r"start: /q.r/is | /ü+/iu",
        "yes": ["q-r", "Q\nR", "qXR", "ü", "ÜüÜ"],
        "no": ["", "qr", "q\n\nr", "u", "q-s", "üq-r"],
    },
    {
        "name": "regex_over_many_lines",
        "grammar": "start: NUMBER\nNUMBER: / [0-9]+   # the whole part\n  ( \\. [0-9]+ )?\n  \\  %\n/x",
        "yes": ["1 %", "10.25 %", "007.0 %"],
        "no": ["", "1%", "1", "1. %", ".5 %", "1 . 5 %", "1.5  %"],
    },
    {
        "name": "regex_with_marks_of_the_syntax",
        "grammar": r'start: /a#b|c:d"/ "|" /[%~(]\)/ // /nothing/',
        "yes": ["a#b|%)", 'c:d"|()', "a#b|~)"],
        "no": ["", "a#b", "a|%)", "a#b|)", "a#b|%)nothing", "c:d|%)"],
    },
    {
        "name": "regex_classes_of_unicode",
        "grammar": r"start: /\w+/ /\s/ /\d+/ /\S/ /\D/ /\W/",
        "yes": ["ab_1 2xy-", "é\u00a07.z!", "日本\t٣. %", "a\n12éé ", "Ж 345x "],
        "no": ["", "a 1xy", "- 1xy-", "a-1xy-", "a xxy-", "a 1 y-", "a 1x2-"],
    },
    # Terminals.
    {
        "name": "terminals_of_terminals",
        "grammar": r"""
start: HEX | PAIR
HEX: "0x" NIBBLE~2 NIBBLE*
NIBBLE: "0".."9" | "a".."f" | "A".."F"
PAIR: WORD ("-" WORD)?
WORD: /[g-z]+/
""",
        "yes": ["0x00", "0xFf", "0xdeadBEEF", "hi", "hi-you"],
        "no": ["", "0x", "0x1", "0xgg", "hi-", "-hi", "hi-you-too", "hi you"],
    },
    {
        "name": "terminal_of_groups_and_counts",
        "grammar": r"""
start: VERSION
VERSION: "v"? PART ("." PART)~1..2 [("-" | "+") /[a-z]/+]
PART: "0" | "1".."9" DIGIT*
DIGIT: "0".."9"
""",
        "yes": ["1.0", "v1.20", "10.0.3", "v0.0.0-rc", "1.2+b"],
        "no": ["", "1", "v", "01.2", "1.2.3.4", "1.2-", "1.2-rc1", "vv1.0", "1.", "1.2 "],
    },
    {
        "name": "longer_alternatives_behind_shorter",
        "grammar": 'start: OP X\nOP: "<" | "<=" | "<<" | "<<="\nX: "=" | "<" | "a"',
        "yes": ["<a", "<=a", "<<a", "<<=a", "<=", "<<", "<==", "<<="],
        "no": ["", "<", "a", "<=<a", "=", "<<<a", "<aa"],
    },
    {
        "name": "terminals_that_overlap",
        "grammar": 'start: /a+/ "a" | B "c"\nB: "b" | "bc"',
        "yes": ["aa", "aaa", "aaaaa", "bc", "bcc"],
        "no": ["", "a", "b", "aab", "bccc", "c", "cb"],
    },
    {
        "name": "keyword_or_name",
        "grammar": 'start: "if" NAME | NAME\nNAME: /[a-z]+/\n%ignore " "',
        "yes": ["if", "x", "iff", "ifx", "if x", "if if", " if  x ", "  name"],
        "no": ["", " ", "if x y", "x if", "iff if", "If x", "if 1"],
    },
    {
        "name": "number_or_range",
        "grammar": 'start: INT ".." INT | FLOAT\n%import common (INT, FLOAT)',
        "yes": ["1..2", "10..20", "1.5", "1.", ".5", "1e3"],
        "no": ["", "1", "1..", "..2", "1...2", "1. .2", "1.5.2", "1.5..2"],
    },
    # Rules.
    {
        "name": "repetition_marks",
        "grammar": 'start: "a"? b* "c"+ ("d" | "e" "f")* \nb: "b" "!"?',
        "yes": ["c", "ac", "abb!bc", "b!ccc", "cdefd", "abcefef"],
        "no": ["", "a", "ab", "aac", "cb", "ce", "cfe", "ab!!c", "dc"],
    },
    {
        "name": "repetition_of_repetition",
        "grammar": 'start: ("a"+ "b"?)+ ("c"*)? (("d"?)+)* ',
        "yes": ["a", "ab", "abab", "aaabacc", "addd", "abcd"],
        "no": ["", "b", "ba", "abb", "c", "adc", "acb"],
    },
    {
        "name": "counts",
        "grammar": 'start: "a"~3 ("b" | "c")~1..2 "d" ~ 0 .. 1 "e"~0 f~2\nf: "f" "g"?',
        "yes": ["aaabff", "aaabcff", "aaaccdff", "aaabdfgfg", "aaacfgf"],
        "no": ["", "aabff", "aaaabff", "aaaff", "aaabbbff", "aaabddff", "aaabeff", "aaabf", "aaabfff"],
    },
    {
        "name": "count_from_nothing",
        "grammar": 'start: ("x" ",")~0..3',
        "yes": ["", "x,", "x,x,", "x,x,x,"],
        "no": ["x", ",", "x,x", "x,x,x,x,", "xx,,", " "],
    },
    {
        "name": "large_counts",
        "grammar": 'start: ("a" | "b")~5..70 | "c"~100',
        "yes": ["ababa", "a" * 70, "ab" * 30, "c" * 100],
        "no": ["", "abab", "a" * 71, "c" * 99, "c" * 101, "ababac"],
    },
    {
        "name": "count_in_and_of_a_terminal",
        "grammar": 'start: A~2 B\nA: "x"~2..3\nB: ("y" | "z"~2)~2',
        "yes": ["xxxxyy", "xxxxxyzz", "xxxxxxzzy", "xxxxzzzz"],
        "no": ["", "xxxyy", "xxxxxxxyy", "xxxxy", "xxxxzy", "xxxxyyy", "xxxxzzz"],
    },
    {
        "name": "brackets_are_optional",
        "grammar": 'start: ["a" | "b"] [["c"] "d"] ["e"]~2 "f" ["g"]*',
        "yes": ["f", "af", "bdf", "acdeef", "cdef", "fggg", "bcdeefg"],
        "no": ["", "abf", "acf", "deeef", "cf", "ag", "ff", "fe"],
    },
    {
        "name": "empty_alternatives",
        "grammar": 'start: ( | "a") x ("b" |) y\nx:\n | "x"\ny: () "y" | ',
        "yes": ["", "a", "b", "x", "y", "axby", "ab", "xy"],
        "no": ["aa", "xa", "yb", "bx", "axbyy", " ", "ay "],
    },
    {
        "name": "nothing_at_all",
        "grammar": "start:",
        "yes": [""],
        "no": ["a", " ", "\n", "start"],
    },
    {
        "name": "aliases",
        "grammar": """
start: e
e: e "+" t -> add
 | e "-" t -> subtract
 | t
t: "(" e ")" -> group
 | /[0-9]+/ -> number
""",
        "yes": ["1", "1+2", "1-2+3", "(1)", "((1+2))-30"],
        "no": ["", "+1", "1+", "1 + 2", "()", "(1", "1)", "add", "1*2"],
    },
    {
        "name": "modifiers_of_rules",
        "grammar": '?start: a | _b\n!a: "a" c?\n_b: "b" | "(" start ")"\n?!c: "c" | "cc"',
        "yes": ["a", "ac", "acc", "b", "(a)", "((b))", "(acc)"],
        "no": ["", "c", "accc", "bc", "(a", "()", "_b", "?start"],
    },
    {
        "name": "priorities",
        "grammar": """
start.10: word | number
word.2: WORD
number.-1: NUMBER "%"?
WORD.3: /[a-z0-9]+/
NUMBER.-2: /[0-9]+/
""",
        "yes": ["a", "12", "12%", "a1", "1a"],
        "no": ["", "%", "a%", "1a%", "12%%", "A", "1 %"],
    },
    {
        "name": "templates",
        "grammar": """
start: "[" _separated{item, ","} "]" | "{" _separated{pair{KEY, item}, ";"} "}"
_separated{x, separator}: x (separator x)*
pair{k, v}: k "=" v
item: /[0-9]/ | quoted{"a".."c"}
quoted{c}: "'" c "'"
KEY: /[x-z]+/
""",
        "yes": ["[1]", "[1,2,3]", "['a',2]", "{x=1}", "{x=1;yz='c'}"],
        "no": ["", "[]", "[1;2]", "[1,]", "{1}", "{x=1,y=2}", "['d']", "{x='a'", "[x=1]", "[1, 2]"],
    },
    {
        "name": "templates_of_templates",
        "grammar": """
start: both{wrapped, "a"} | nested{/[0-9]/}
both{f, x}: f{x} f{"b"}
wrapped{x}: "<" x ">"
nested{x}: x | "(" nested{x} ")"
""",
        "yes": ["<a><b>", "1", "(2)", "(((3)))"],
        "no": ["", "<a><a>", "<b><a>", "<a>", "()", "(1", "1)", "(<a>)", "((a))"],
    },
    # How a grammar is written down.
    {
        "name": "lines_and_comments",
        "grammar": """
// A comment at the beginning.
# And another.

   start: "a" // "not this"
        | "b"   # | "nor this"

        // Between alternatives.
        | "c" other

   other:"d"|"e"
# The last line has no end.""",
        "yes": ["a", "b", "cd", "ce"],
        "no": ["", "c", "d", "abcd", "not this", "nor this", "a ", "cde"],
    },
    {
        "name": "lines_that_end_in_two_characters",
        "grammar": 'start: A\r\n  | b\r\n\r\nA: "x"\r\n// a comment\r\nb: "y"\r\n | "z"\r\n',
        "yes": ["x", "y", "z"],
        "no": ["", "xy", "x\r\n", "\r\n", "X", "a"],
    },
    {
        "name": "line_that_goes_on_behind_a_backslash",
        "grammar": 'start: "a" \\\n  "b" \\\n  | "c"',
        "yes": ["ab", "c"],
        "no": ["", "a", "b", "abc", "a\\\n  b", "a b"],
    },
    {
        "name": "any_order_and_unused_definitions",
        "grammar": 'UNUSED: "u"\nunused: UNUSED start\nb: "b" start?\nstart: a | b\na: A\nA: "a"',
        "yes": ["a", "b", "ba", "bba", "bbb"],
        "no": ["", "u", "ab", "aa", "bua", "baa"],
    },
    # Recursion and ambiguity.
    {
        "name": "recursion_on_either_side",
        "grammar": """
start: left | right | "(" both ")"
left: left "l" | "x"
right: "r" right | "y"
both: both both | "z"
""",
        "yes": ["x", "xlll", "y", "rry", "(z)", "(zzzz)"],
        "no": ["", "l", "lx", "yr", "()", "z", "(x)", "xlr"],
    },
    {
        "name": "recursion_through_other_rules",
        "grammar": 'start: a\na: b "1" | "x"\nb: c "2"? | "y"\nc: empty a "3"\nempty: "e"*',
        "yes": ["x", "y1", "x31", "x321", "x3131", "y1321", "ex31", "eex321"],
        "no": ["", "y", "x1", "x3", "x32", "x312", "e", "ey1", "x31e"],
    },
    {
        "name": "brackets_that_match",
        "grammar": 'start: (round | square)*\nround: "(" start ")"\nsquare: "[" start "]"',
        "yes": ["", "()", "[]", "()[]", "([()])[]", "((()))"],
        "no": ["(", ")", "(]", "([)]", ")(", "(()", "()x", "( )"],
    },
    {
        "name": "palindromes",
        "grammar": 'start: "a" start "a" | "b" start "b" | "a" | "b" |',
        "yes": ["", "a", "b", "aa", "aba", "abba", "babab"],
        "no": ["ab", "aab", "abab", "abb", "c", "aba "],
    },
    {
        "name": "read_in_many_ways",
        "grammar": 'start: (x | y | z)+\nx: "a" | "aa"\ny: "a" "a" | "ab"\nz: /a+b?/',
        "yes": ["a", "aa", "aaaa", "ab", "abab", "aaabaa"],
        "no": ["", "b", "ba", "abb", "aba b", "c"],
    },
    # What `common` has to import.
    {
        "name": "import_numbers",
        "grammar": """
start: "d" DIGIT | "h" HEXDIGIT | "i" INT | "si" SIGNED_INT | "dec" DECIMAL | "f" FLOAT | "sf" SIGNED_FLOAT
     | "n" NUMBER | "sn" SIGNED_NUMBER
%import common (DIGIT, HEXDIGIT, INT, SIGNED_INT, DECIMAL)
%import common (FLOAT, SIGNED_FLOAT, NUMBER, SIGNED_NUMBER)
""",
        "yes": [
            "d7", "h0", "hf", "hA", "i0", "i0012", "si5", "si-5", "si+12", "dec1.5", "dec1.", "dec.5",
            "f1.5", "f1.", "f.5", "f1e9", "f1.5E-10", "f.5e+3", "sf-1.5", "sf+1e1", "sf.0",
            "n1", "n1.5", "n2e3", "n.5", "sn1", "sn-1", "sn+1.5e-7",
        ],
        "no": [
            "", "d", "d12", "dx", "hg", "hab", "i", "i-1", "i1.0", "si", "si--1", "si+", "si- 1", "dec1", "dec.",
            "dec1e5",
            "f1", "f-1.5", "f1e", "fe5", "f1.5e", "f.", "sf1", "sf+-1.5", "n", "n-1", "n1e", "n.", "sn", "sn-",
            "sn1.5.2",
        ],
    },
    {
        "name": "import_letters_and_names",
        "grammar": """
start: "l" LCASE_LETTER | "u" UCASE_LETTER | "e" LETTER | "w" WORD | "c" CNAME
%import common.LCASE_LETTER
%import common.UCASE_LETTER
%import common.LETTER
%import common.WORD
%import common.CNAME
""",
        "yes": ["la", "uZ", "eq", "eQ", "wa", "wHello", "c_", "cab_9", "c__A1", "cX"],
        "no": ["", "l", "lA", "uz", "uAB", "e1", "e_", "w", "wa1", "wa_b", "c", "c9a", "ca-b", "cé", "wé"],
    },
    {
        "name": "import_strings",
        "grammar": "start: ESCAPED_STRING\n%import common.ESCAPED_STRING",
        "yes": ['""', '"a"', '"a b\tc"', '"\\""', '"\\\\"', '"a\\"b\\\\"', '"\\n\\u00e9\\q"', "\"é'\""],
        "no": ["", '"', '"""', '"a', 'a"', '"a"b"', '"\\"', '"\\\\\\"', '"a\nb"', "'a'", '"a" ', '""""'],
    },
    {
        "name": "import_white_space",
        "grammar": """
start: "i" WS_INLINE "." | "w" WS "." | "c" CR | "l" LF | "n" NEWLINE "."
%import common (WS_INLINE, WS, CR, LF, NEWLINE)
""",
        "yes": ["i .", "i\t \t.", "w \t\f\r\n.", "w\n\n.", "c\r", "l\n", "n\n.", "n\r\n.", "n\n\r\n\n."],
        "no": ["", "i.", "i\n.", "i\u00a0.", "w.", "w\v.", "w\u00a0.", "c\n", "l\r", "l\n\n", "n\r.", "n\n\r.", "n."],
    },
    {
        "name": "import_comments",
        "grammar": """
start: (SH_COMMENT | CPP_COMMENT | SQL_COMMENT) LF | C_COMMENT "."
%import common.SH_COMMENT
%import common.CPP_COMMENT
%import common.SQL_COMMENT
%import common.C_COMMENT
%import common.LF
""",
        "yes": [
            "#\n", "# a # b\n", "//\n", "// a // b\n", "--\n", "-- a -- b\n", "#\r\n",
            "/**/.", "/* a */.", "/***/.", "/* a\n * b\n **/.", "/*/*/.", "/*//*/.",
        ],
        "no": [
            "", "#", "# a", "# a\n\n", "/\n", "-\n", "- -\n", "/*.", "/*/.", "/* *.", "/* */ */.", "/* a */", "/**/ .",
        ],
    },
    {
        "name": "import_under_another_name",
        "grammar": """
%import common.INT -> WHOLE
%import common.CNAME -> _NAME
%import common (LF)
start: _NAME "=" WHOLE (LF _NAME "=" WHOLE)*
""",
        "yes": ["a=1", "a_b=12\nc=3", "_=0"],
        "no": ["", "a=", "=1", "a=b", "a=1\n", "a=1 b=2", "a = 1", "a=-1"],
    },
    {
        "name": "imports_do_not_meet_own_names",
        "grammar": 'start: NUMBER INT DIGIT\nINT: "x"\nDIGIT: "y"\n%import common.NUMBER',
        "yes": ["1xy", "1.5xy", "2e5xy", ".5xy"],
        "no": ["", "xxy", "1x", "1xx", "yxy", "11y", "1x1"],
    },
    # What is ignored.
    {
        "name": "ignore_white_space",
        "grammar": 'start: "a" B "," /c+/\nB: "b" "b"\n%import common.WS\n%ignore WS',
        "yes": ["abb,c", " abb,c", "abb,c ", "a bb,c", "abb ,c", "abb, ccc", "\n\ta\r\nbb\f,\tc\n\n", "  abb,c  "],
        "no": ["", " ", "ab b,c", "abb,c c", "a\u00a0bb,c", "abb;c", "abb,", "a b,c", "a\vbb,c"],
    },
    {
        "name": "ignore_between_repeated_terminals",
        "grammar": 'start: digits "." NUMBER\ndigits: /[0-9]/+\nNUMBER: /[0-9]/+\n%ignore " "',
        "yes": ["1.2", "12.34", "1 2 3.45", " 12 3 . 45 ", "1  2.3"],
        "no": ["", "1.2 3", ".5", "1.", "1. ", "1 .2 . 3", "1,2"],
    },
    {
        "name": "ignore_around_nothing",
        "grammar": 'start: "a"? b*\nb: "b" "c"?\n%ignore " "\n%ignore "\\n"',
        "yes": ["", " ", " \n ", "a", " a", "a ", "a b c", "\nbc\nb\n", "b b", "  b"],
        "no": ["aa", "a a", "c", " c", "a c", "\t", "bcc", "b c c"],
    },
    {
        "name": "ignore_comments",
        "grammar": """
start: statement*
statement: NAME "=" NAME ";"
NAME: /[a-z]+/
%import common.WS
%import common.CPP_COMMENT
%import common.C_COMMENT
%ignore WS
%ignore CPP_COMMENT
%ignore C_COMMENT
%ignore /#[^\\n]*/
""",
        "yes": [
            "", "a=b;", "a = b ;\nc=d;", "// only this", "/* x */ a = b;", "a /* x */ = // y\n b; # z",
            "a=b;//c=d", "a=/* ; */b;", "#\n#\na=b;\n", "a/**/=/***/b;",
        ],
        "no": ["a", "a=b", "a=b //\n", "a/=b;", "a=b;/* x", "a = b; c", "na/**/me", "a/* */ */=b;", "a=b;;"],
    },
    {
        "name": "ignore_a_choice",
        "grammar": 'start: "x" "y"~2\n%ignore " " | "\\t" | "--" /[a-z]/+ "--"',
        "yes": ["xyy", "x y\ty", " \tx--ab-- yy", "xy--c----d--y", "xyy--e--", "x --f-- y y"],
        "no": ["", "x\nyy", "x-yy", "x--yy", "x----yy", "x--a-yy", "x--A--yy", "xyy--"],
    },
    {
        "name": "ignore_what_is_used_too",
        "grammar": 'start: "x" GAP "y" "z"\nGAP: "_"\n%ignore GAP',
        "yes": ["x_yz", "x__yz", "_x___y__z_", "x_y_z"],
        "no": ["", "xyz", "xy_z", "x_y", "x_zy", "x yz"],
    },
    {
        "name": "ignore_in_pairs",
        "grammar": 'start: "a" "b"?\n%ignore "  "\n%ignore /\\t{2}/',
        "yes": ["a", "ab", "a  b", "    ab", "a\t\tb", "a  \t\t    b", "ab  "],
        "no": ["", " a", "a b", "a   b", "a\tb", "a \t b", "ab\t\t\t", "b"],
    },
    {
        "name": "line_ends_that_count",
        "grammar": """
start: _NL? (entry _NL)*
entry: CNAME "=" (ESCAPED_STRING | SIGNED_NUMBER)
%import common (CNAME, ESCAPED_STRING, SIGNED_NUMBER, WS_INLINE)
%import common.NEWLINE -> _NL
%ignore WS_INLINE
""",
        "yes": ["", "\n", "a=1\n", "a = -1.5\r\n", "\n\na=1\nb = \"x y\"\n\n", "  a = 1 \n  ", "a=1 \n"],
        "no": ["a=1", "a\n=1\n", "a=1 b=2\n", "a=1\nb", "a=\n", "a=x\n", 'a="x\n', "=1\n", "a==1\n"],
    },
    # Definitions made over.
    {
        "name": "override_and_extend",
        "grammar": """
%import common.DIGIT
%import common.INT
start: word DIGIT INT
word: "old"
%override word: "new" | "newer"
%extend word: "newest"
%override DIGIT: "x" | "y"
%extend INT: "many"
""",
        "yes": ["newx1", "newery12", "newestxmany", "newy007"],
        "no": ["", "oldx1", "new11", "newx", "newxx", "many", "newest", "newx-1"],
    },
    # Grammars as people write them.
    {
        "name": "queries",
        "grammar": """
start: "SELECT"i columns "FROM"i NAME where? order? ";"?
columns: "*" | NAME ("," NAME)*
where: "WHERE"i condition (("AND"i | "OR"i) condition)*
condition: NAME OPERATOR value
value: NUMBER | STRING | NAME
order: "ORDER"i "BY"i NAME ("ASC"i | "DESC"i)?
OPERATOR: "=" | "<>" | "<" | "<=" | ">" | ">="
NAME: /[a-z_][a-z0-9_]*/
STRING: /'([^']|'')*'/
%import common.NUMBER
%import common.WS
%ignore WS
""",
        "yes": [
            "SELECT * FROM t",
            "select a, b from t;",
            "SELECT a FROM t WHERE b = 1 AND c <> 'it''s' ORDER BY a DESC;",
            "\nSELECT a\n  FROM t\n WHERE b>=2.5 OR c<d\n",
            "SELECT*FROM t",
            "SELECT a FROM t ORDER BY b",
        ],
        "no": [
            "", "SELECT FROM t", "SELECT a, FROM", "SELECT a b FROM t", "SELECT * FROM t WHERE", "SELECT * FROM T",
            "SELECT * FROM t WHERE a = 'b", "SELECT * FROM t WHERE a == 1", "SELECT * FROM t ORDER a",
            "SELECT * FROM t;;",
        ],
    },
    {
        "name": "queries_with_their_own_spaces",
        "grammar": """
start: "SELECT " column " FROM " table (" WHERE " condition)?
column: "name" | "age" | "*"
table: "people" | "pets"
condition: column "=" number
number: "1" | "2"
""",
        "yes": ["SELECT name FROM people", "SELECT * FROM pets WHERE age=1", "SELECT age FROM pets WHERE *=2"],
        "no": [
            "", "SELECT name", "SELECT name FROM cars", "SELECT  name FROM pets", "SELECT name FROM pets WHERE age=3",
        ],
    },
    {
        "name": "calculator",
        "grammar": """
?start: sum
      | NAME "=" sum -> assign
?sum: product
    | sum "+" product -> add
    | sum "-" product -> subtract
?product: atom
        | product "*" atom -> multiply
        | product "/" atom -> divide
?atom: NUMBER -> number
     | "-" atom -> negate
     | NAME -> variable
     | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
""",
        "yes": ["1", "1+2*3", "x = 1.5", "-(a - -b) / 2e3", " ( ( 7 ) ) ", "a*b", "y=-1"],
        "no": ["", "1+", "*2", "(1", "1 2", "x = y = 1", "1\n+2", "1 = x", "()", "2(3)"],
    },
    {
        "name": "any_json",
        "grammar": r"""
?start: value
?value: object
      | array
      | STRING
      | NUMBER -> number
      | "true" -> yes
      | "false" -> no
      | "null" -> nothing
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: "\"" (/[^"\\\x00-\x1f]/ | "\\" (/["\\\/bfnrt]/ | "u" HEXDIGIT~4))* "\""
NUMBER: "-"? ("0" | /[1-9][0-9]*/) ("." /[0-9]+/)? (/[eE][+-]?/ /[0-9]+/)?
%import common.HEXDIGIT
%ignore /[ \t\r\n]+/
""",
        "yes": [
            "{}", "[]", "null", "-0.5e+10", '"a\\"\\u00e9\\/"', '{"a": [1, true, {"b": null}], "c": ""}',
            " [ 1 , 2 ] ", "\n{\n}\n", '{"":0}',
        ],
        "no": [
            "", " ", "{", "[1,]", "[,1]", '{"a"}', "{'a': 1}", '{"a": 01}', "+1", "1.", "tru", '"\\x41"',
            '"a\nb"', "nul l",
            '"', "[1 2]", "{} {}", "- 1", '"\\u00e"',
        ],
    },
    {
        "name": "arithmetic",
        "grammar": """
start: expr
expr: term (("+" | "-") term)*
term: factor (("*" | "/" | "%") factor)*
factor: "-"? primary ("**" factor)?
primary: "(" expr ")" | FUNCTION "(" expr ("," expr)* ")" | NUMBER
FUNCTION: "min" | "max" | "sqrt"
NUMBER: /[0-9]+(\\.[0-9]+)?/
%ignore /[ \\t]+/
""",
        "yes": ["1", "1 + 2 * 3", "-2 ** -3 ** 4", "(1.5)", "min(1, max(2, 3)) % 4", "sqrt ( 2 )", "2**3*4", "\t1 -1 "],
        "no": ["", "1 +", "--1", "1 * * 2", "min()", "min(1,)", "sin(1)", "1.", ".5", "(1))", "mi n(1)", "1\n"],
    },
    {
        "name": "calls_as_in_python",
        "grammar": r"""
start: "[" call ("," call)* "]"
call: path "(" [arguments] ")"
path: NAME ("." NAME)*
arguments: value ("," value)* ("," keyword)* | keyword ("," keyword)*
keyword: NAME "=" value
?value: SIGNED_NUMBER | STRING | CONSTANT | list | dict | call
list: "[" [value ("," value)* ","?] "]"
dict: "{" [STRING ":" value ("," STRING ":" value)*] "}"
CONSTANT: "True" | "False" | "None"
STRING: /"(\\.|[^"\\\n])*"/ | /'(\\.|[^'\\\n])*'/
%import common.CNAME -> NAME
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
""",
        "yes": [
            "[f()]", "[f(1)]", "[a.b.c(x=1)]", "[f(1, 'two', y=None), g()]", "[f(g(-1.5), [1, 2,], {'a': True})]",
            '[ f ( "a\\"b" ) ]', "[f(\n  x=1,\n  y=[]\n)]", "[True()]",
        ],
        "no": [
            "", "[]", "f()", "[f]", "[f(]", "[f(x=1, 2)]", "[f(,)]", "[f(1 2)]", "[f()", "[f('a)]", "[f(x==1)]",
            "[.f()]",
            "[f(1,)]", "[f(true)]", "[1f()]", "[f(a)]",
        ],
    },
    {
        "name": "tool_calls_in_tags",
        "grammar": r"""
start: TEXT? tool+
tool: "<tool>" NEWLINE? body NEWLINE? "</tool>" NEWLINE?
body: "{\"name\": \"" ("search" | "open") "\", \"arguments\": " object "}"
object: "{" (pair (", " pair)*)? "}"
pair: ESCAPED_STRING ": " (ESCAPED_STRING | SIGNED_INT | "true" | "false" | "null" | object)
TEXT: /[^<]+/
%import common (ESCAPED_STRING, SIGNED_INT, NEWLINE)
""",
        "yes": [
            '<tool>{"name": "open", "arguments": {}}</tool>',
            'First:\n<tool>\n{"name": "search", "arguments": {"q": "a \\"b\\"", "n": -3}}\n</tool>\n',
            '<tool>{"name": "open", "arguments": {"a": {"b": null}}}</tool>',
            '<tool>{"name": "open", "arguments": {}}</tool><tool>{"name": "open", "arguments": {}}</tool>',
        ],
        "no": [
            "", "First:", "<tool></tool>", '<tool>{"name": "close", "arguments": {}}</tool>',
            '<tool>{"name": "open", "arguments": {}}',
            '<tool>{"name":"open","arguments":{}}</tool>',
            '<tool>{"name": "open", "arguments": {}}</tool>Last.',
            '<tool>{"name": "open", "arguments": {"a": 1,"b": 2}}</tool>',
        ],
    },
    {
        "name": "patches",
        "grammar": """
start: "*** Begin" LF change+ "*** End" LF?
change: "*** Add: " FILE LF added+ -> add
      | "*** Delete: " FILE LF -> delete
      | "*** Update: " FILE LF ("@@" (" " FILE)? LF line+)+ -> update
added: "+" REST? LF
line: ("+" | "-" | " ") REST? LF
FILE: /[^\\n]+/
REST: /[^\\n]+/
%import common.LF
""",
        "yes": [
            "*** Begin\n*** Delete: a.txt\n*** End",
            "*** Begin\n*** Add: a b.txt\n+one\n+\n+*** End\n*** End\n",
            "*** Begin\n*** Update: x\n@@\n-old\n+new\n same\n@@ f()\n \n*** Delete: y\n*** End",
        ],
        "no": [
            "",
            "*** Begin\n*** End",
            "*** Begin\n*** Delete: \n*** End",
            "*** Begin\n*** Add: a\n*** End",
            "*** Begin\n*** Add: a\none\n*** End",
            "*** Begin\n*** Update: a\n+b\n*** End",
            "*** Begin\n*** Delete: a\n*** End\n\n",
            "*** Begin\n*** Delete: a",
        ],
    },
    {
        "name": "dates_and_times",
        "grammar": """
start: DATE ("T" | " ") TIME ZONE?
DATE: /[0-9]/~4 "-" ("0" /[1-9]/ | "1" /[0-2]/) "-" (/[0-2][0-9]/ | "3" /[01]/)
TIME: /([01][0-9]|2[0-3])(:[0-5][0-9]){1,2}/ ["." DIGIT~1..6]
ZONE: "Z"i | ("+" | "-") DIGIT~2 ":" DIGIT~2
DIGIT: "0".."9"
""",
        "yes": ["2024-02-29T23:59", "2024-12-31 00:00:00", "1999-01-01T12:30:45.5z", "2024-10-10T10:10+02:00"],
        "no": [
            "", "2024-13-01T00:00", "2024-00-01T00:00", "24-01-01T00:00", "2024-01-32T00:00", "2024-01-01T24:00",
            "2024-01-01", "2024-01-01T00", "2024-01-01T00:00.", "2024-01-01T00:00+2:00",
        ],
    },
]


def verified(case):
    """Asks lark about every text of the case; fails where it disagrees."""
    import lark

    parser = lark.Lark(case["grammar"], parser="earley", lexer="dynamic_complete", start="start")
    for wanted in ("yes", "no"):
        for text in case[wanted]:
            try:
                parser.parse(text)
                found = "yes"
            except lark.exceptions.UnexpectedInput:
                found = "no"
            assert found == wanted, f"{case['name']}: {text!r} is in {wanted!r}, lark says {found}"


if __name__ == "__main__":
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names), "a name is there twice"
    for each in CASES:
        verified(each)
    texts = sum(len(each["yes"]) + len(each["no"]) for each in CASES)
    print(f"lark agrees on {texts} texts of {len(CASES)} grammars")
