//! Tables: each rule is broken once.

use super::SCALE;
use contigo::{
    Align, Direction, OperandSpec,
    design::{
        Near,
        kernel::{KernelMap, MapBuilder, MapError, MapRule, Name, Protocol, json},
    },
};

const ANY: OperandSpec = OperandSpec::in_out();

fn kernel() -> MapBuilder<'static> {
    KernelMap::named("k", Protocol::Hs).pointer("a", 0x10, ANY, "").scalar("n", 0x1C, 32)
}

/// Which rule, which argument, which number.
fn broken(map: MapBuilder<'_>) -> (MapRule, String, u64) {
    let MapError { rule, name, found, line, .. } = map.build().unwrap_err();
    assert_eq!(line, 0, "a table has no lines");
    (rule, name.to_string(), found)
}

#[test]
fn a_table_says_what_its_text_says() {
    assert_eq!(
        (SCALE.name().as_str(), SCALE.protocol(), SCALE.window_bytes()),
        ("scale", Protocol::Hs, 0x4C)
    );
    assert_eq!((SCALE.words(), SCALE.addr_bits(), SCALE.has_interrupt()), (4, 64, true));
    let text = SCALE.to_string();
    assert!(text.contains(r#"{"name":"to","offset":40,"bits":64,"direction":"out","align":4,"min":1,"bytes":"4*m*n"}"#), "{text}");
    for text in [text, format!("{SCALE:#}")] {
        assert_eq!(json::map(text.as_bytes()).unwrap().build().unwrap(), SCALE, "{text}");
    }
    let few = OperandSpec { min_bytes: 8, max_bytes: 64, ..OperandSpec::from_device() };
    let every = kernel().pointer32("b", 0x20, few, "8").result("r", 0x24, 64);
    let every = every.build().unwrap();
    assert_eq!((every.addr_bits(), every.results()[0].words()), (32, 2));
    assert_eq!(json::map(every.to_string().as_bytes()).unwrap().build().unwrap(), every);
}

#[test]
fn each_rule_is_named_with_its_argument() {
    let name = |text| Name::new(text).unwrap();
    assert_eq!(broken(kernel().scalar("x", 0x20, 0)), (MapRule::Width, "x".into(), 0));
    assert_eq!(broken(kernel().scalar("x", 0x20, 65)), (MapRule::Width, "x".into(), 65));
    assert_eq!(broken(kernel().scalar("x", 0x22, 1)), (MapRule::Offset, "x".into(), 0x22));
    assert_eq!(broken(kernel().scalar("x", 0x0C, 1)), (MapRule::Reserved, "x".into(), 0x0C));
    assert_eq!(
        broken(kernel().scalar("x", 0x14, 32)),
        (MapRule::Overlaps(name("x")), "a".into(), 0x14)
    );
    assert_eq!(
        broken(kernel().scalar("x", 0x18, 33)),
        (MapRule::Overlaps(name("x")), "n".into(), 0x1C)
    );
    assert_eq!(broken(kernel().scalar("n", 0x20, 32)), (MapRule::SameName, "n".into(), 0));
    assert_eq!(broken(kernel().scalar("a b", 0x20, 32)), (MapRule::Name, "a?b".into(), 0));
    assert_eq!(broken(kernel().scalar("", 0x20, 32)), (MapRule::Name, String::new(), 0));
    let long = "n".repeat(48);
    assert_eq!(broken(kernel().scalar(&long, 0x20, 32)).0, MapRule::Name);
    assert!(kernel().scalar(&long[1..], 0x20, 32).build().is_ok());
    assert_eq!(
        broken(kernel().window(0x1C)),
        (MapRule::OutsideWindow { window_bytes: 0x1C }, "n".into(), 0x20)
    );
    assert!(matches!(
        broken(kernel().scalar("x", 0xFFFF_FFFC, 32)).0,
        MapRule::OutsideWindow { .. }
    ));
    let streams = KernelMap::named("k", Protocol::Hs).scalar("n", 0x10, 32).build().unwrap();
    assert_eq!(
        (streams.operands().len(), streams.words(), streams.addr_bits()),
        (0, 1, 64),
        "numbers alone, or streams"
    );
    assert_eq!(broken(KernelMap::named("", Protocol::Hs)).0, MapRule::Name);
    let no_such = |name, all: &[&str]| {
        (MapRule::NoSuchArgument { near: Near::of(name, all.iter().copied()) }, name.into(), 0)
    };
    assert_eq!(broken(kernel().direction("b", Direction::ToDevice)), no_such("b", &["a", "n"]));
    assert_eq!(broken(kernel().align("n", Align::PAGE)), no_such("n", &["a"]), "it is no pointer");
    let told = kernel().direction("aa", Direction::ToDevice).build().unwrap_err().to_string();
    assert!(
        told.ends_with(
            "no argument of this name and kind; its other arguments that are most like it: `a`, `n`"
        ),
        "{told}"
    );
    assert_eq!(
        broken(kernel().as_pointer("n").as_scalar("a").length("n", "m")).0,
        MapRule::NoSuchScalar(name("m"))
    );
    let limits = OperandSpec { min_bytes: 9, max_bytes: 8, ..ANY };
    assert_eq!(broken(kernel().pointer("b", 0x20, limits, "")), (MapRule::Limits, "b".into(), 9));
    assert_eq!(
        broken(kernel().pointer("b", 0x20, OperandSpec { align_bytes: 3, ..ANY }, "")),
        (MapRule::Limits, "b".into(), 3)
    );
}

#[test]
fn a_length_is_a_number_times_three_scalars_at_most() {
    let map = |rule| kernel().scalar("m", 0x20, 32).length("a", rule).build();
    for rule in ["4*n", "n*4", " 4 * n ", "2*n*2", "n*m*n", "4096", "n"] {
        assert!(map(rule).unwrap().to_string().contains("\"bytes\":"), "{rule}");
    }
    assert!(!map("").unwrap().to_string().contains("\"bytes\":"));
    for rule in [
        "4*",
        "*n",
        "4**n",
        "0*n",
        "-1",
        "4+n",
        "n*m*n*m",
        "4294967296*4294967296",
        "4*n*",
        "(n)",
        "0x10",
    ] {
        assert!(
            matches!(map(rule).unwrap_err().rule, MapRule::Length | MapRule::NoSuchScalar(_)),
            "{rule}"
        );
    }
    assert_eq!(
        map("4*k").unwrap_err().to_string(),
        "`a`: its length names `k`, which is no scalar of this kernel"
    );
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let names: Vec<_> = (0..40).map(|index| format!("x{index}")).collect();
    let grown = |pointers: u32, scalars: u32, results: u32, bits| {
        let mut map = KernelMap::named("k", Protocol::Chain);
        for (index, name) in (0..pointers + scalars + results).zip(&names) {
            let offset = 0x10 + 8 * index;
            map = match index {
                _ if index < pointers => map.pointer(name, offset, ANY, ""),
                _ if index < pointers + scalars => map.scalar(name, offset, bits),
                _ => map.result(name, offset, bits),
            };
        }
        map.build()
    };
    let full = grown(16, 16, 2, 64).unwrap();
    assert_eq!((full.words(), full.operands().len()), (32, 16));
    assert_eq!(json::map(full.to_string().as_bytes()).unwrap().build().unwrap(), full);
    let most = |what, most| MapRule::TooMany { what, most };
    assert_eq!(grown(17, 0, 0, 32).unwrap_err().rule, most("pointers", 16));
    assert_eq!(grown(1, 17, 0, 32).unwrap_err().rule, most("scalars", 16));
    assert_eq!(grown(1, 0, 5, 32).unwrap_err().rule, most("words of results", 4));
    assert_eq!(grown(1, 0, 3, 64).unwrap_err().rule, most("words of results", 4));
    assert_eq!(grown(16, 16, 5, 32).unwrap_err().rule, most("arguments", 36));
}
