//! What is refused as ptxas 12.9 refuses it, and in its words.

use super::{
    super::{Refused, parse},
    HEADER,
};
use crate::codes::code;

#[test]
fn what_is_no_ptx_is_refused_with_its_line() {
    let body = |body: &str| format!("{HEADER}.visible .entry k(.param .u64 a) {{ .reg .b32 %r<3>; .reg .b64 %rd<2>;\n{body} }}");
    let line = |line: usize, what: &str| format!("ptxas application ptx input, line {line}; {what}");
    let cases = [
        (String::new(), line(1, "fatal   : Missing .version directive at start of file 'application ptx input'")),
        (
            ".version 6.0\n.visible .entry k() { ret; }".to_owned(),
            line(1, "fatal   : Missing .target directive at start of file 'application ptx input'"),
        ),
        (HEADER.replace("64", "32"), line(3, "fatal   : Parsing error near '32': syntax error")),
        (
            HEADER.replace("53", "90"),
            "ptxas fatal   : SM version specified by .target is higher than default SM version assumed".to_owned(),
        ),
        (format!("{HEADER}.visible .entry k"), line(4, "fatal   : Parsing error near '': syntax error")),
        (format!("{HEADER}.global .u32 x;"), line(4, "fatal   : Parsing error near '.global': syntax error")),
        (body("frob.u64 %rd1, 1;"), line(5, "error   : Not a name of any known instruction: 'frob.u64'")),
        (body("add.f32 %r1, %r1, %r2;"), line(5, "error   : Not a name of any known instruction: 'add.f32'")),
        (body("mov.u64 %r1, 1;"), line(5, "error   : Arguments mismatch for instruction 'mov'")),
        (body("ld.global.u64 %r1, [%rd1];"), line(5, "error   : Arguments mismatch for instruction 'ld'")),
        (body("st.global.u64 [%rd2], 1;"), line(5, "error   : Unknown symbol '%rd2'")),
        (body("ld.param.u64 %rd1, [b];"), line(5, "error   : Unknown symbol 'b'")),
        (body("ret;\nbra L;"), line(6, "error   : Unknown symbol 'L'")),
        (body("ret"), line(5, "fatal   : Parsing error near '}': syntax error")),
        (body(".reg .b32 %x<65532>;"), line(5, "error   : 65537 registers: there is room for 65536")),
        (body("@%r1 ret;"), line(5, "error   : Predicate expression expected")),
        (body("L: ret;\nL:"), line(6, "error   : Duplicate definition of label 'L'")),
        (body("a: ret;"), line(5, "error   : Duplicate definition of label 'a'")),
        (body("1: ret;"), line(5, "fatal   : Parsing error near '1': syntax error")),
        (body(".reg .b32 %r<9>;"), line(5, "error   : Duplicate definition of variable '%r'")),
        (
            format!("{HEADER}.visible .entry k(.param .u64 a, .param .u32 a) {{ }}"),
            line(4, "error   : Duplicate definition of variable 'a'"),
        ),
        (format!("{HEADER}.visible .entry k() {{ }}\n.entry k() {{ }}"), line(5, "error   : Duplicate definition of function 'k'")),
    ];
    for (text, log) in cases {
        assert_eq!(parse(&text, 87, 12040).err(), Some(Refused { log, code: code::INVALID_PTX }), "{text}");
    }
    for (driver, newest, next) in
        [(10020, "6.5", "6.6"), (11040, "7.4", "7.5"), (12040, "8.4", "8.5"), (12090, "8.8", "8.9"), (13000, "9.0", "9.1")]
    {
        assert!(parse(&HEADER.replace("6.0", newest), 53, driver).is_ok());
        let log = line(1, &format!("fatal   : Unsupported .version {next}; current version is '{newest}'"));
        assert_eq!(parse(&HEADER.replace("6.0", next), 53, driver).err(), Some(Refused { log, code: code::UNSUPPORTED_PTX_VERSION }));
    }
}

/// Comments, a kernel that is not visible, and several.
#[test]
fn a_module_has_its_visible_kernels() {
    let text = format!(
        "// made by hand\n{HEADER}.visible .entry a() {{ ret; }} // one\n.entry hidden() {{ ret; }}\n.visible .entry b(\n\t.param .u32 x,\n\t.param .u64 y\n)\n{{\n}}"
    );
    let found: Vec<_> = parse(&text, 87, 12040).unwrap().into_iter().map(|entry| (entry.name, entry.params)).collect();
    assert_eq!(found, [("a".to_owned(), vec![]), ("b".to_owned(), vec![4, 8])]);
}

/// What is said of one statement, with registers of all widths; none where it is taken.
fn said(statement: &str) -> Option<String> {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 a) {{
        .reg .pred %p<4>; .reg .b8 %c<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; {statement} }}"
    );
    let refused = parse(&text, 87, 12040).err()?;
    refused.log.split_once("   : ").map(|(_, what)| what.to_owned())
}

/// Each instruction with each type T, on registers of its width, R, and of twice that, W.
#[test]
fn an_instruction_has_its_types() {
    const NUMBERS: &str = "u16 u32 u64 s16 s32 s64";
    const BITS: &str = "b16 b32 b64 pred";
    const ALL: &str = "b16 b32 b64 u16 u32 u64 s16 s32 s64";
    const MEMORY: &str = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64";
    let two = ["add", "sub", "mul.lo", "div", "rem", "min", "max"].map(|name| (format!("{name}.T R0, R1, R2"), NUMBERS));
    let logic = ["and", "or", "xor"].map(|name| (format!("{name}.T R0, R1, R2"), BITS));
    let ordered = ["lt", "le", "gt", "ge"].map(|how| (format!("setp.{how}.T %p0, R1, R2"), NUMBERS));
    let others = [
        ("mov.T R0, R1", "b16 b32 b64 u16 u32 u64 s16 s32 s64 pred"),
        ("mov.T R0, %tid.x", "b16 b32 u16 u32 s16 s32"),
        ("not.T R0, R1", BITS),
        ("mad.lo.T R0, R1, R2, R3", NUMBERS),
        ("mul.wide.T W0, R1, R2", "u16 u32 s16 s32"),
        ("mad.wide.T W0, R1, R2, W3", "u16 u32 s16 s32"),
        ("setp.eq.T %p0, R1, R2", ALL),
        ("setp.ne.T %p0, R1, 1", ALL),
        ("selp.T R0, R1, R2, %p0", ALL),
        ("shl.T R0, R1, %r1", "b16 b32 b64"),
        ("shr.T R0, R1, 3", ALL),
        ("bfe.T R0, R1, 0, 255", "u32 u64"),
        ("cvt.T.s8 R0, %r1", "u8 u16 u32 u64 s8 s16 s32 s64"),
        ("cvt.u8.T %d0, R1", "u8 u16 u32 u64 s8 s16 s32 s64"),
        ("cvt.s64.T %d0, %ctaid.y", "u8 u16 u32 s8 s16 s32"),
        ("cvta.to.global.T R0, R1", "u64"),
        ("ld.global.T R0, [%d1]", MEMORY),
        ("ld.global.nc.v2.T {R0, R1}, [%d1+16]", MEMORY),
        ("ld.global.v4.T {R0, R1, R2, R3}, [%d1]", "b8 b16 b32 u8 u16 u32 s8 s16 s32"),
        ("ld.param.T R0, [a]", "b64 u64 s64"),
        ("st.volatile.global.T [%d1], R0", MEMORY),
        ("st.global.v4.T [%d1], {R0, 1, R2, R3}", "b8 b16 b32 u8 u16 u32 s8 s16 s32"),
    ];
    let others = others.map(|(statement, taken)| (statement.to_owned(), taken));
    for (statement, taken) in two.into_iter().chain(logic).chain(ordered).chain(others) {
        let takes = |ty: &&str| {
            let (register, twice) = match ty.trim_start_matches(['b', 'u', 's']) {
                "8" => ("%c", "%h"),
                "16" => ("%h", "%r"),
                "32" => ("%r", "%d"),
                "64" => ("%d", "%d"),
                _ => ("%p", "%p"),
            };
            said(&format!("{};", statement.replace('T', ty).replace('R', register).replace('W', twice))).is_none()
        };
        let found: Vec<_> = format!("{MEMORY} pred").split(' ').filter(takes).map(str::to_owned).collect();
        assert_eq!(found.join(" "), taken, "{statement}");
    }
}

#[test]
fn an_instruction_has_its_operands() {
    for (statement, expected) in [
        ("add.b32 %r0, %r1, 1;", "Unexpected instruction types specified for 'add'"),
        ("mul.wide.u64 %d0, %d1, %d2;", "Unexpected instruction types specified for 'mul.wide'"),
        ("cvt.pred.u32 %p0, %r1;", "Unexpected instruction types specified for 'cvt'"),
        ("ld.global.pred %p0, [%d1];", "Unexpected instruction types specified for 'ld'"),
        ("setp.lt.b32 %p0, %r1, 1;", "Mismatch between instruction type and comparison qualifier"),
        ("st.global.nc.u32 [%d1], %r1;", "Illegal modifier '.nc' for instruction 'st'"),
        ("ld.global.v4.u64 {%d0, %d1, %d2, %d3}, [%d1];", "Feature '256 bit wide load/store' requires PTX ISA .version 8.8 or later"),
        ("mad.lo.s32 %r0, %r1, %r2, %ctaid.y;", "Special register argument not allowed for instruction 'mad.lo'"),
        ("st.global.u32 [%d1], %ntid.x;", "Special register argument not allowed for instruction 'st'"),
        ("mov.u64 %d0, %tid.x;", "Arguments mismatch for instruction 'mov'"),
        ("shl.b64 %d0, %d1, %d2;", "Arguments mismatch for instruction 'shl'"),
        ("bfe.u32 %r0, %r1, 256, 1;", "Argument 2 of instruction 'bfe': value '256' out of range, expected to be in range [0..255]"),
        ("bfe.u32 %r0, %r1, 0, -1;", "Argument 3 of instruction 'bfe': value '-1' out of range, expected to be in range [0..255]"),
        // Octal.
        ("mov.u32 %r0, 010;", "Parsing error near '010': syntax error"),
        ("mov.u32 %r0, -010;", "Parsing error near '010': syntax error"),
        ("ld.global.u32 %r0, [%d1+08];", "Parsing error near '08': syntax error"),
        ("mov.u32 %r0, 0x10;", "Parsing error near '0x10': syntax error"),
        (".reg .b32 %x<010>;", "Parsing error near '010': syntax error"),
        ("mov.u32 %r01, 1;", "Unknown symbol '%r01'"),
    ] {
        assert_eq!(said(statement).as_deref(), Some(expected), "{statement}");
    }
    assert_eq!(said("mov.u32 %r0, 0; mov.u32 %r0, -0;"), None);
}
