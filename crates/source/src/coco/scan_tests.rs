use super::*;

fn number(text: &str) -> Scanned<Option<f64>> {
    let mut s = Scanner::new(text.as_bytes());
    let n = s.number()?;
    s.end().map(|()| n)
}

#[test]
fn numbers_are_those_that_a_correct_parser_reads() {
    // Short ones, ones at the edge of the exact path, and ones that need every digit.
    let texts = [
        "0",
        "-0",
        "-0.0",
        "7",
        "123456789",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "0.1",
        "0.25",
        "473.07",
        "0.30000000000000004",
        "0.1234567890123456789",
        "12345678901234567890123",
        "1e3",
        "1E-7",
        "2.5e+10",
        "5e-324",
        "1e400",
        "0.0000000000000000000001",
        "0.00000000000000000000001",
        "1.7976931348623157e308",
        "18446744073709551616",
        "99999999999999999999.5",
    ];
    for text in texts {
        let want: f64 = text.parse().unwrap();
        assert_eq!(number(text).unwrap().unwrap().to_bits(), want.to_bits(), "{text}");
    }
    // A walk over two-decimal values: all take the exact path.
    for i in 0..100_000u32 {
        let text = format!("{}.{:02}", i / 100, i % 100);
        assert_eq!(number(&text).unwrap(), Some(text.parse().unwrap()), "{text}");
    }
}

#[test]
fn pythons_names_for_what_is_no_number_are_read() {
    assert!(number("NaN").unwrap().unwrap().is_nan());
    assert_eq!(number("Infinity"), Ok(Some(f64::INFINITY)));
    assert_eq!(number("-Infinity"), Ok(Some(f64::NEG_INFINITY)));
    assert_eq!(number("null"), Ok(None));
    assert_eq!(number("\"1\""), Ok(None));
}

#[test]
fn what_is_no_number_is_a_fault() {
    for text in ["-", "01", "1.", ".5", "+1", "1e", "1e+", "--1", "Nan", "-NaN", "1 2", "", "nul"] {
        assert!(number(text).is_err(), "{text}");
    }
}

#[test]
fn ids_are_exact_and_whole() {
    let id = |text: &str| Scanner::new(text.as_bytes()).id().unwrap();
    assert_eq!(id("9223372036854775807"), Some(i64::MAX));
    assert_eq!(id("-3"), Some(-3));
    assert_eq!(id("42.0"), Some(42));
    assert_eq!(id("1e3"), Some(1000));
    for none in ["42.5", "9223372036854775808", "NaN", "\"7\"", "null", "[1]"] {
        assert_eq!(id(none), None, "{none}");
    }
}

#[test]
fn values_nobody_asked_for_are_stepped_over() {
    let text = r#" {"a": [1, {"b": "]}\"\\"}, []], "c\u0064": -1.5e3, "e": {"f": [null, true]}} "#;
    let mut s = Scanner::new(text.as_bytes());
    let mut names = Vec::new();
    s.object(|s, name| {
        names.push(String::from_utf8(name.to_vec()).unwrap());
        s.skip()
    })
    .unwrap();
    s.end().unwrap();
    assert_eq!(names, ["a", "cd", "e"]);
}

#[test]
fn brackets_must_match_and_end() {
    for text in ["[", "[1, 2", "{\"a\": [}", "[[1}]", "\"abc", "{\"a\" 1}", "{\"a\": 1,}", "[1,]", "\"\\", "{1: 2}"] {
        let mut s = Scanner::new(text.as_bytes());
        let done = match text.as_bytes()[0] {
            b'{' => s.object(|s, _| s.skip()),
            b'[' => s.array(|s| s.skip()),
            _ => s.skip(),
        };
        assert!(done.is_err(), "{text}");
    }
    let deep = "[".repeat(100_000);
    assert!(Scanner::new(deep.as_bytes()).skip().is_err());
}

#[test]
fn four_numbers_are_a_box_and_nothing_else_is() {
    let four = |text: &str| Scanner::new(text.as_bytes()).four().unwrap();
    assert_eq!(four("[1, 2.5,3 , 4]"), Some([1.0, 2.5, 3.0, 4.0]));
    for none in ["[1,2,3]", "[1,2,3,4,5]", "[1,2,3,null]", "[]", "null", "\"1,2,3,4\"", "[[1,2,3,4]]", "[1,2,3,\"4\"]"]
    {
        assert_eq!(four(none), None, "{none}");
    }
}

#[test]
fn texts_are_unescaped() {
    let text = |text: &[u8]| Scanner::new(text).text();
    assert_eq!(text(br#""a\u00e9\n\"b""#).unwrap().unwrap(), "a\u{e9}\n\"b");
    assert_eq!(text("\"caf\u{e9}\"".as_bytes()).unwrap().unwrap(), "caf\u{e9}");
    assert_eq!(text(b"\xef\xbb\xbf\"bom\"").unwrap().unwrap(), "bom");
    assert_eq!(text(b"12").unwrap(), None);
    assert!(text(b"\"\xff\"").is_err());
    assert!(text(br#""\x""#).is_err());
}
