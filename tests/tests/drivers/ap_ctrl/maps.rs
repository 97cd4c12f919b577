//! Tables: each rule is broken once.

use super::SCALE;
use crate::prelude::cases;
use contigo::design::Near;
use contigo::design::kernel::{KernelMap, MapBuilder, MapError, MapRule, Name, Protocol, json};
use contigo::{Align, Direction, OperandSpec};

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
        (SCALE.name.as_str(), SCALE.protocol, SCALE.window_bytes()),
        ("scale", Protocol::Hs, 0x4C)
    );
    assert_eq!((SCALE.words(), SCALE.addr_bits(), SCALE.interrupt), (4, 64, true));
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

/// There is no such argument, and these are most like it.
fn near(name: &str, all: &[&'static str]) -> MapRule {
    MapRule::NoSuchArgument { near: Near::of(name, all.iter().copied()) }
}

#[test]
fn each_rule_is_named_with_its_argument() {
    let name = |text| Name::new(text).unwrap();
    let long = "n".repeat(48);
    let limits = |least, most, align_bytes| OperandSpec {
        min_bytes: least,
        max_bytes: most,
        align_bytes,
        ..ANY
    };
    for (map, rule, argument, number) in [
        (kernel().scalar("x", 0x20, 0), MapRule::Width, "x", 0),
        (kernel().scalar("x", 0x20, 65), MapRule::Width, "x", 65),
        (kernel().scalar("x", 0x22, 1), MapRule::Offset, "x", 0x22),
        (kernel().scalar("x", 0x0C, 1), MapRule::Reserved, "x", 0x0C),
        (kernel().scalar("x", 0x14, 32), MapRule::Overlaps(name("x")), "a", 0x14),
        (kernel().scalar("x", 0x18, 33), MapRule::Overlaps(name("x")), "n", 0x1C),
        (kernel().scalar("n", 0x20, 32), MapRule::SameName, "n", 0),
        (kernel().scalar("a b", 0x20, 32), MapRule::Name, "a?b", 0),
        (kernel().scalar("", 0x20, 32), MapRule::Name, "", 0),
        (kernel().window(0x1C), MapRule::OutsideWindow { window_bytes: 0x1C }, "n", 0x20),
        (kernel().pointer("b", 0x20, limits(9, 8, 1), ""), MapRule::Limits, "b", 9),
        (kernel().pointer("b", 0x20, limits(1, 8, 3), ""), MapRule::Limits, "b", 3),
        (kernel().direction("b", Direction::ToDevice), near("b", &["a", "n"]), "b", 0),
        // It is no pointer.
        (kernel().align("n", Align::PAGE), near("n", &["a"]), "n", 0),
    ] {
        assert_eq!(broken(map), (rule, argument.into(), number));
    }
    cases! {
        broken(kernel().scalar(&long, 0x20, 32)).0 => MapRule::Name,
        kernel().scalar(&long[1..], 0x20, 32).build() => Ok(_),
        broken(kernel().scalar("x", 0xFFFF_FFFC, 32)).0 => MapRule::OutsideWindow { .. },
        broken(KernelMap::named("", Protocol::Hs)).0 => MapRule::Name,
        broken(kernel().as_pointer("n").as_scalar("a").length("n", "m")).0
            => MapRule::NoSuchScalar(scalar) if scalar == name("m"),
    }
    // Numbers alone, or streams.
    let streams = KernelMap::named("k", Protocol::Hs).scalar("n", 0x10, 32).build().unwrap();
    assert_eq!((streams.operands().len(), streams.words(), streams.addr_bits()), (0, 1, 64));
    let told = kernel().direction("aa", Direction::ToDevice).build().unwrap_err().to_string();
    let ends =
        "no argument of this name and kind; its other arguments that are most like it: `a`, `n`";
    assert!(told.ends_with(ends), "{told}");
}

#[test]
fn length_takes_at_most_three_scalars() {
    let map = |rule| kernel().scalar("m", 0x20, 32).length("a", rule).build();
    for rule in ["4*n", "n*4", " 4 * n ", "2*n*2", "n*m*n", "4096", "n"] {
        assert!(map(rule).unwrap().to_string().contains("\"bytes\":"), "{rule}");
    }
    assert!(!map("").unwrap().to_string().contains("\"bytes\":"));
    let long = "4294967296*4294967296";
    for rule in ["4*", "*n", "4**n", "0*n", "-1", "4+n", "n*m*n*m", long, "4*n*", "(n)", "0x10"] {
        let told = map(rule).unwrap_err().rule;
        assert!(matches!(told, MapRule::Length | MapRule::NoSuchScalar(_)), "{rule}: {told:?}");
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
    for (pointers, scalars, results, bits, what, most) in [
        (17, 0, 0, 32, "pointers", 16),
        (1, 17, 0, 32, "scalars", 16),
        (1, 0, 5, 32, "words of results", 4),
        (1, 0, 3, 64, "words of results", 4),
        (16, 16, 5, 32, "arguments", 36),
    ] {
        let told = grown(pointers, scalars, results, bits).unwrap_err().rule;
        assert_eq!(told, MapRule::TooMany { what, most });
    }
}
