//! Files: of the shape that the tools write, cut off at every byte, and damaged at random.

use crate::prelude::cases;
use contigo::Direction;
use contigo::design::kernel::{
    KernelMap, MapBuilder, MapError, MapRule, Name, Protocol, any, header, hwh, json,
};
use fastrand::Rng;

/// The shape of Vitis HLS 2022.1 (as in yxd97/check_vitis on GitHub, `xhbm_kernel_hw.h`), with a
/// result and an output added.
const HEADER: &str = include_str!("xfilter_hw.h");
/// The shape of Vivado 2018.3 (as in Xilinx/PYNQ-HelloWorld on GitHub, `resizer.hwh`), with
/// pointers as Vitis HLS has them.
const HWH: &str = include_str!("system.hwh");
const JSON: &str = r#"{"name": "filter", "protocol": "ap_ctrl_chain", "window": 4096, "interrupt": true,
  "pointers": [
    {"name": "from", "offset": "0x18", "direction": "in", "align": 4, "bytes": "4*n"},
    {"name": "to", "offset": 36, "bits": 64, "direction": "out", "min": 4, "max": 65536}
  ],
  "scalars": [{"name": "n", "offset": 48}],
  "results": []}"#;

type Read = for<'a> fn(&'a [u8]) -> Result<MapBuilder<'a>, MapError>;
const FILES: [(&str, Read); 3] =
    [(JSON, json::map), (HEADER, header::map), (HWH, |text| hwh::map(text, "filter_0"))];

/// Each argument of a kind: its name, offset and width.
macro_rules! all {
    ($list:expr) => {
        $list
            .iter()
            .map(|each| (each.name.as_str(), each.offset as usize, each.bits))
            .collect::<Vec<_>>()
    };
}

#[test]
fn a_header_says_what_hls_made() {
    let read = header::map(HEADER.as_bytes()).unwrap();
    let map = read
        .direction("from_r", Direction::ToDevice)
        .length("from_r", "4*n")
        .length("to_r", "4*n")
        .build()
        .unwrap();
    let what = (map.name.as_str(), map.protocol, map.interrupt);
    assert_eq!(what, ("FILTER", Protocol::Chain, true));
    assert_eq!(all!(map.pointers()), [("from_r", 0x18, 64), ("to_r", 0x24, 64)]);
    let [from, to] = map.operands() else { panic!("{map}") };
    assert_eq!([from.direction, to.direction], [Direction::ToDevice, Direction::Bidirectional]);
    assert_eq!(from.align_bytes, 64, "a wide port may assume 64 bytes");
    assert_eq!(all!(map.scalars()), [("n", 0x30, 32), ("mode", 0x38, 3)]);
    assert_eq!(all!(map.results()), [("ap_return", 0x10, 32), ("peak", 0x40, 16)]);
    again(&map);

    // Without comments it says nearly as much.
    let lines = HEADER.lines().filter(|line| line.starts_with('#'));
    let defines: String = lines.flat_map(|line| [line, "\r\n"]).collect();
    let map = header::map(defines.as_bytes()).unwrap().build().unwrap();
    let what = (map.name.as_str(), map.pointers().len(), map.results().len());
    assert_eq!(what, ("FILTER_CONTROL", 2, 1));
    assert_eq!((map.pointers()[0].name.as_str(), map.scalars()[1].bits), ("FROM_R", 3));
}

#[test]
fn a_pointer_of_32_bits_is_the_programs_word() {
    // Vivado HLS 2019.2 for a 32-bit bus (as in whbldhwj/ppcg on GitHub, xkernel0_hw.h).
    let text = "// control\n// 0x00 : Control signals\n//        bit 0  - ap_start \
        (Read/Write/COH)\n\
        // 0x10 : Data signal of A_V\n//        bit 31~0 - A_V[31:0] (Read/Write)\n\
        // 0x14 : reserved\n#define XKERNEL0_CONTROL_ADDR_A_V_DATA 0x10\n\
        #define XKERNEL0_CONTROL_BITS_A_V_DATA 32\n";
    let read = header::map(text.as_bytes()).unwrap();
    assert_eq!(read.build().unwrap().words(), 1, "until then it is a number");
    let map = read.as_pointer("A_V").build().unwrap();
    let what = (map.addr_bits(), map.protocol, map.interrupt, map.window_bytes());
    assert_eq!(what, (32, Protocol::Hs, false, 0x14));
}

/// A kernel of streams has no argument at all, and one of numbers no pointer.
#[test]
fn a_kernel_without_a_pointer_has_a_map() {
    let text = "// control\n// 0x0 : Control signals\n//       bit 0  - ap_start \
        (Read/Write/COH)\n#define XFLOW_CONTROL_ADDR_AP_CTRL 0x0\n";
    let map = header::map(text.as_bytes()).unwrap().build().unwrap();
    let what = (map.name.as_str(), map.pointers().len(), map.words(), map.window_bytes());
    assert_eq!(what, ("FLOW", 0, 0, 16));
    again(&map);
    let register = |name: &str, description: &str, offset: u32| {
        format!(
            "<REGISTER NAME=\"{name}\"><PROPERTY NAME=\"DESCRIPTION\" VALUE=\"{description}\"/>\
             <PROPERTY NAME=\"ADDRESS_OFFSET\" VALUE=\"{offset}\"/><PROPERTY NAME=\"SIZE\" \
                 VALUE=\"32\"/></REGISTER>"
        )
    };
    let module = |registers: String| {
        format!(
            "<EDKSYSTEM><MODULE INSTANCE=\"k\" VLNV=\"a:hls:k:1.0\"><ADDRESSBLOCK \
             RANGE=\"64K\"><REGISTERS>{}{registers}</REGISTERS>\
             </ADDRESSBLOCK></MODULE></EDKSYSTEM>",
            register("CTRL", "", 0)
        )
    };
    let text = module(register("n", "Data signal of n", 16));
    let map = hwh::map(text.as_bytes(), "k").unwrap().build().unwrap();
    let what = (map.pointers().len(), map.scalars()[0].bits, map.window_bytes());
    assert_eq!(what, (0, 32, 65_536));

    // Three and four words are one argument, whose width no map has.
    for words in [3, 4] {
        let each = (0..words)
            .map(|word| register(&format!("key_{}", word + 1), "Data signal of key", 16 + 4 * word))
            .collect::<String>();
        let error = hwh::map(module(each).as_bytes(), "k").unwrap().build().unwrap_err();
        let told = (error.rule, error.name.as_str(), error.found);
        assert_eq!(told, (MapRule::Width, "key", u64::from(words) * 32));
    }
    let text = text.replace("VALUE=\"16\"", "VALUE=\"x16\"");
    let rule = refused(hwh::map(text.as_bytes(), "k")).0;
    assert_eq!(rule, MapRule::Expected("a number as ADDRESS_OFFSET"));
}

#[test]
fn a_hand_off_says_the_same_of_one_instance() {
    let map = hwh::map(HWH.as_bytes(), "filter_0").unwrap().length("to_r", "2*n").build().unwrap();
    let what = (map.name.as_str(), map.protocol, map.interrupt, map.window_bytes());
    assert_eq!(what, ("filter_0", Protocol::Hs, true, 65536));
    assert_eq!(all!(map.pointers()), [("from_r", 24, 64), ("to_r", 36, 64)]);
    assert_eq!(all!(map.scalars()), [("n", 48, 16)]);
    assert_eq!(all!(map.results())[0].1, 16);
    let first = hwh::map(HWH.as_bytes(), "").unwrap().build().unwrap();
    assert_eq!(first.name.as_str(), "filter_0", "the first of HLS");
    let missing = hwh::map(HWH.as_bytes(), "filter_9").unwrap_err();
    let rule = MapRule::Missing("MODULE with this INSTANCE");
    assert_eq!((missing.rule, missing.name.as_str()), (rule, "filter_9"));
    assert_eq!(hwh::map(HWH.as_bytes(), "axi_intc_0").unwrap_err().rule, MapRule::NoControl);
}

#[test]
fn file_kind_is_known_by_first_letter() {
    for ((text, read), name) in FILES.into_iter().zip(["filter", "FILTER", "filter_0"]) {
        let read = read(text.as_bytes()).unwrap().build().unwrap();
        assert_eq!(read.name.as_str(), name);
        assert_eq!(any(text.as_bytes(), "").unwrap().build().unwrap(), read);
    }
}

/// The rule that is broken, and the line.
fn refused<'a>(read: Result<MapBuilder<'a>, MapError>) -> (MapRule, u32) {
    let error = read.and_then(|map| map.build()).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("line {}, byte {}: ", error.line, error.byte)),
        "{error}"
    );
    (error.rule, error.line)
}

#[test]
fn file_errors_are_named_with_line() {
    let json = |from: &str, to: &str| refused(json::map(JSON.replace(from, to).as_bytes()));
    let number = MapRule::Expected("a whole number of 32 bits");
    for (from, to, rule, line) in [
        ("chain", "none", MapRule::NoControl, 1),
        ("chain", "x", MapRule::Expected("`ap_ctrl_hs` or `ap_ctrl_chain`"), 1),
        ("\"in\"", "\"up\"", MapRule::Expected("`in`, `out` or `inout`"), 3),
        (": 36", ": 38", MapRule::Offset, 4),
        (": 36", ": 28", MapRule::Overlaps(Name::new("to").unwrap()), 3),
        ("4096", "48", MapRule::OutsideWindow { window_bytes: 48 }, 6),
        ("4*n", "4*k", MapRule::NoSuchScalar(Name::new("k").unwrap()), 3),
        ("4*n", "4*\\n", MapRule::Expected("a string without escapes, and its end"), 3),
        ("48}", "48.5}", MapRule::Expected("`,` or `}`"), 6),
        ("48}", "-48}", number, 6),
        ("48}", "4294967296}", number, 6),
        ("\"offset\": 48", "\"bits\": 32", MapRule::Missing("key `offset`"), 6),
        ("\"results\": []}", "\"results\": []} x", MapRule::Expected("the end"), 7),
        ("true", "1", MapRule::Expected("`true` or `false`"), 1),
        ("\"max\"", "\"most\"", MapRule::Expected("one of a map's keys"), 4),
    ] {
        assert_eq!(json(from, to), (rule, line), "{from} is {to}");
    }

    let header = |from: &str, to: &str| refused(header::map(HEADER.replace(from, to).as_bytes()));
    let line = |text: &str| {
        u32::try_from(HEADER.lines().position(|line| line.contains(text)).unwrap()).unwrap() + 1
    };
    let memory = "0x1fff : Memory 'table' (1200 * 32b)";
    for (from, to, rule, at) in [
        ("BITS_N_DATA      32", "BITS_N_DATA      33", MapRule::Disagrees, "BITS_N_DATA"),
        ("0x44 : Control", "0x00 : Control", MapRule::SecondWindow, "0x44 : Control"),
        (
            "XFILTER_CONTROL_ADDR_PEAK",
            "XFILTER_CONTROL_R_ADDR_PEAK",
            MapRule::SecondWindow,
            "ADDR_PEAK_DATA",
        ),
        ("0x44 : Control signal of peak", memory, MapRule::MemoryInWindow, "0x44 :"),
        (" n[31:0]", " n[127:0]", MapRule::Disagrees, "BITS_N_DATA"),
        (" n[31:0]", " n[x:0]", MapRule::Expected("a bit's number"), " n[31:0]"),
    ] {
        assert_eq!(header(from, to), (rule, line(at)), "{from} is {to}");
    }
    cases! {
        header("BITS_N_DATA ", "BITS_K_DATA ") => (MapRule::NoSuchArgument { .. }, at)
            if at == line("BITS_N_DATA"),
    }
    // ap_ctrl_none, as Vitis HLS 2024.1 writes it.
    let none = "// control\n// 0x00 : reserved\n// 0x10 : Data signal of ap_return\n//        bit \
        0  - ap_return[0] (Read)\n";
    assert_eq!(refused(header::map(none.as_bytes())).0, MapRule::NoControl);

    let register = "<REGISTER NAME=\"n\">";
    for (from, to, rule) in [
        ("NAME=\"CTRL\"", "NAME=\"CTRL_\"", MapRule::NoControl),
        ("</MODULE>\n  </MODULES>", "", MapRule::Expected("the end of MODULE")),
        (register, "</REGISTERS><REGISTERS><REGISTER NAME=\"n\">", MapRule::SecondWindow),
        (register, "<REGISTER NAME=\"Memory_n\">", MapRule::MemoryInWindow),
        (
            "NAME=\"ADDRESS_OFFSET\" VALUE=\"48\"",
            "NAME=\"X\" VALUE=\"\"",
            MapRule::Missing("ADDRESS_OFFSET"),
        ),
    ] {
        let told = refused(hwh::map(HWH.replace(from, to).as_bytes(), "filter_0")).0;
        assert_eq!(told, rule, "{from} is {to}");
    }
    assert_eq!(json::map(&vec![b' '; (32 << 20) + 1]).unwrap_err().rule, MapRule::TooLong);
}

#[test]
fn truncated_file_is_error_or_map() {
    for (text, read) in FILES {
        let whole = read(text.as_bytes()).unwrap().build().unwrap();
        for end in 0..text.len() {
            if let Ok(map) = read(&text.as_bytes()[..end]).and_then(|map| map.build()) {
                // The lines after the last argument may be missing.
                assert!(map.pointers().len() <= whole.pointers().len());
            }
        }
    }
}

#[test]
fn damaged_file_is_error_or_rereadable_map() {
    let mut rng = Rng::with_seed(1);
    let (mut maps, mut errors) = (0, 0);
    for round in 0..12_000 {
        let (text, read) = FILES[round % 3];
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..4) {
                0 => bytes[at] = rng.u8(..),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, *rng.choice(b"{}[]\",:<>/-'0123456789\n\0\xFF").unwrap()),
                _ => {
                    let end = rng.usize(at..bytes.len().min(at + 40));
                    let part = bytes[at..end].to_vec();
                    let to = rng.usize(..bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        match read(&bytes).and_then(|map| map.build()) {
            Ok(map) => {
                again(&map);
                maps += 1;
            }
            Err(_) => errors += 1,
        }
    }
    assert!(maps > 500 && errors > 500, "{maps} {errors}");
}

/// A map's text is read as the same map.
fn again(map: &KernelMap) {
    assert_eq!(&json::map(map.to_string().as_bytes()).unwrap().build().unwrap(), map);
}
