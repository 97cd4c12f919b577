//! The ISA manual's words about each instruction, at its borders.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_sign_loss,
    reason = "a test that panics has failed, which is its purpose; negative numbers as their bits"
)]

use super::{Grid, Refused, Window, parse};
use crate::codes::code;

const HEADER: &str = ".version 6.0\n.target sm_53\n.address_size 64\n";
const ONE: Grid = Grid { blocks: [1; 3], threads: [1; 3] };
/// Where the output is, unlike any number that a kernel computes.
const OUT: u64 = 0x7000_0000_0000;

/// A kernel of these statements, run: `%rd0` is where its 64 bytes of output are, `%rd1` and `%r1`
/// are `a`, `%rd2` and `%r2` are `b`.
fn run(body: &str, [a, b]: [u64; 2], grid: Grid) -> Result<Vec<u8>, i32> {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b) {{
        .reg .pred %p<3>; .reg .b16 %rs<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2;
        {body} }}"
    );
    let entries = parse(&text, 87, 12040).unwrap();
    let mut windows = [Window::new(OUT, vec![0xEE; 64], true)];
    let [entry] = &entries[..] else { return Err(code::NOT_FOUND) };
    assert!(entry.run(&mut entry.start(grid), &[OUT, a, b], &mut windows, 10_000)?);
    Ok(windows[0].bytes().to_vec())
}

const MINUS: u64 = u64::MAX;

/// Each instruction where its operands' types, or a register's end, make a difference. A case says
/// what is in `%rd3` after it, which was 0. Where the result is in `%r3`, `%rd3` is that, with
/// zeroes above.
#[test]
fn instructions_do_what_the_manual_says() {
    let cases: [(&str, [u64; 2], u64); 37] = [
        ("add.s32 %r3, %r1, %r2", [u64::from(u32::MAX), 3], 2),
        ("sub.s32 %r3, %r1, %r2", [2, 3], 0xFFFF_FFFF),
        ("mul.lo.s32 %r3, %r1, %r2", [0x8000_0001, 6], 6),
        ("mad.lo.s32 %r3, %r1, %r2, -7", [MINUS, 5], 0xFFFF_FFF4),
        ("mul.lo.s64 %rd3, %rd1, %rd2", [MINUS, MINUS], 1),
        ("mul.wide.u32 %rd3, %r1, %r2", [0xFFFF_FFFF, 0xFFFF_FFFF], 0xFFFF_FFFE_0000_0001),
        ("mul.wide.s32 %rd3, %r1, %r2", [0xFFFF_FFFF, 0xFFFF_FFFF], 1),
        ("div.u64 %rd3, %rd1, %rd2", [MINUS, 2], MINUS >> 1),
        ("div.s64 %rd3, %rd1, %rd2", [MINUS - 4, 2], MINUS - 1),
        ("rem.u32 %r3, %r1, %r2", [MINUS, 16], 15),
        ("rem.s32 %r3, %r1, %r2", [MINUS - 4, 3], 0xFFFF_FFFE),
        // Amounts of a shift are clamped to the width.
        ("shl.b64 %rd3, %rd1, %r2", [MINUS, 1], MINUS - 1),
        ("shl.b64 %rd3, %rd1, %r2", [MINUS, 64], 0),
        ("shl.b32 %r3, %r1, %r2", [1, 32], 0),
        ("shr.u64 %rd3, %rd1, %r2", [MINUS, 1], MINUS >> 1),
        ("shr.u64 %rd3, %rd1, %r2", [MINUS, 64], 0),
        ("shr.s64 %rd3, %rd1, %r2", [MINUS, 64], MINUS),
        ("shr.s32 %r3, %r1, %r2", [0x8000_0000, 4_000_000_000], 0xFFFF_FFFF),
        // A field ends with the register; its position and length are bytes.
        ("bfe.u32 %r3, %r1, 8, 5", [0xFFFF_F5FF, 0], 0x15),
        ("bfe.u32 %r3, %r1, 28, 8", [MINUS, 0], 15),
        ("bfe.u32 %r3, %r1, 0, 0", [MINUS, 0], 0),
        ("bfe.u32 %r3, %r1, 0, 255", [MINUS, 0], 0xFFFF_FFFF),
        ("bfe.u32 %r3, %r1, %r2, 4", [0xAB, 0x104], 0xA),
        ("and.b64 %rd3, %rd1, -4294967296", [MINUS, 0], 0xFFFF_FFFF_0000_0000),
        ("or.b32 %r3, %r1, %r2", [0b1100, 0b1010], 0b1110),
        ("min.s64 %rd3, %rd1, -128", [5, 0], -128_i64 as u64),
        ("max.u64 %rd3, %rd1, -128", [5, 0], -128_i64 as u64),
        ("cvt.s32.s8 %r3, %r1", [0x1FF, 0], 0xFFFF_FFFF),
        ("cvt.u32.u8 %r3, %r1", [0x1FF, 0], 0xFF),
        ("cvt.s64.s32 %rd3, %r1", [0x8000_0000, 0], 0xFFFF_FFFF_8000_0000),
        ("cvt.u64.u32 %rd3, %r1", [0x8000_0000, 0], 0x8000_0000),
        ("cvt.s8.s32 %r3, %r1", [0x180, 0], 0xFFFF_FF80),
        ("setp.lt.u32 %p1, %r1, %r2; selp.b32 %r3, 1, 0, %p1", [MINUS, 1], 0),
        ("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r3, 1, 0, %p1", [MINUS, 1], 1),
        ("setp.ge.s32 %p1, %r1, %r2; selp.b32 %r3, 1, 0, %p1", [7, 7], 1),
        ("setp.gt.s32 %p1, %r1, %r2; selp.b32 %r3, 1, 0, %p1", [7, 7], 0),
        (
            "setp.ne.s32 %p1, %r1, 1; setp.le.s32 %p2, %r2, 1; and.pred %p0, %p1, %p2; selp.b32 %r3, 1, 0, %p0",
            [1, 1],
            0,
        ),
    ];
    for (body, values, expected) in cases {
        let result = if body.contains("%r3") { "cvt.u64.u32 %rd3, %r3;" } else { "" };
        let bytes =
            run(&format!("{body}; {result} st.global.u64 [%rd0], %rd3;"), values, ONE).unwrap();
        assert_eq!(
            u64::from_le_bytes(bytes[..8].try_into().unwrap()),
            expected,
            "{body} of {values:?}"
        );
    }
    // Not specified, so nothing may rely on it.
    assert_eq!(run("div.u32 %r3, %r1, %r2;", [1, 0], ONE), Err(code::LAUNCH_FAILED));
}

fn narrow(body: &str, values: [u64; 2]) -> u32 {
    let bytes = run(&format!("{body} st.global.u32 [%rd0], %r3;"), values, ONE).unwrap();
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

#[test]
fn branches_go_both_ways_and_guards_are_for_any_instruction() {
    let count = "mov.u32 %r3, 0; $again: add.u32 %r3, %r3, 2; add.u32 %r1, %r1, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra $again; bra.uni end;
                 mov.u32 %r3, 9; end: @!%p1 add.u32 %r3, %r3, 100; @%p1 ret;";
    assert_eq!(narrow(count, [5, 0]), 110);
}

#[test]
fn memory_is_little_endian_and_only_what_is_allowed() {
    let bytes =
        run("mov.u32 %r3, 4278255873; st.global.u8 [%rd0+3], %r3; st.global.v4.u32 [%rd0+16], {%r3, %r1, 7, %r2};", [1, 2], ONE).unwrap();
    assert_eq!(bytes[..8], [0xEE, 0xEE, 0xEE, 1, 0xEE, 0xEE, 0xEE, 0xEE]);
    assert_eq!(bytes[16..32], [1, 1, 1, 0xFF, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0]);
    let signed = "st.global.u64 [%rd0], %rd1; ld.global.s8 %r3, [%rd0+1];";
    assert_eq!(narrow(signed, [0x8000, 0]), 0xFFFF_FF80);
    let pair = "st.global.u64 [%rd0+8], %rd1; ld.global.nc.v2.u32 {%r1, %r3}, [%rd0+8]; add.u32 %r3, %r3, %r1;";
    assert_eq!(narrow(pair, [0x5_0000_0003, 0]), 8);
    for (body, expected) in [
        ("st.global.u32 [%rd0+62], %r1;", code::MISALIGNED_ADDRESS),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", code::MISALIGNED_ADDRESS),
        ("st.global.u8 [%rd0+64], %r1;", code::ILLEGAL_ADDRESS),
        ("ld.global.u8 %r1, [%rd0+-1];", code::ILLEGAL_ADDRESS),
        ("mov.u64 %rd3, 0; ld.global.u64 %rd3, [%rd3];", code::ILLEGAL_ADDRESS),
    ] {
        assert_eq!(run(body, [0, 0], ONE), Err(expected), "{body}");
    }
}

/// An input is not written, and a word that only begins in it is not its.
#[test]
fn inputs_are_read_only() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 at) {{ .reg .b64 %rd<2>; ld.param.u64 %rd0, [at]; st.global.u64 [%rd0], 1; }}"
    );
    let entries = parse(&text, 53, 10020).unwrap();
    for (writable, len, expected) in [
        (false, 8, Err(code::ILLEGAL_ADDRESS)),
        (true, 7, Err(code::ILLEGAL_ADDRESS)),
        (true, 8, Ok(true)),
    ] {
        let mut windows = [Window::new(OUT, vec![0; len], writable)];
        assert_eq!(entries[0].run(&mut entries[0].start(ONE), &[OUT], &mut windows, 10), expected);
    }
}

#[test]
fn what_was_written_is_known() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 at) {{
        .reg .b64 %rd<2>; ld.param.u64 %rd0, [at]; ld.global.u64 %rd1, [%rd0]; st.global.u8 [%rd0+9], 1; st.global.u16 [%rd0+4], 2; }}"
    );
    let mut windows = [Window::new(OUT, vec![0xEE; 16], true)];
    assert_eq!(windows[0].written(), (OUT, &[][..]));
    let entry = &parse(&text, 53, 10020).unwrap()[0];
    assert_eq!(entry.run(&mut entry.start(ONE), &[OUT], &mut windows, 10), Ok(true));
    assert_eq!(windows[0].written(), (OUT + 4, &[2, 0, 0xEE, 0xEE, 0xEE, 1][..]));
}

#[test]
fn a_kernel_goes_on_where_it_was() {
    let mut windows = [Window::new(OUT, vec![0; 8], true)];
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 at) {{ .reg .pred %p<1>; .reg .b32 %r<2>; .reg .b64 %rd<1>; ld.param.u64 %rd0, [at];
        ld.global.u32 %r0, [%rd0]; add.u32 %r0, %r0, 1; st.global.u32 [%rd0], %r0;
        again: ld.volatile.global.u32 %r1, [%rd0+4]; setp.eq.u32 %p0, %r1, 0; @%p0 bra again; }}"
    );
    let count = &parse(&text, 53, 10020).unwrap()[0];
    let mut progress = count.start(Grid { blocks: [2, 1, 1], threads: [1, 2, 1] });
    // The first thread waits, however long it is looked at.
    for statements_max in [0, 1, 2, 3, 1000] {
        assert_eq!(count.run(&mut progress, &[OUT], &mut windows, statements_max), Ok(false));
    }
    assert_eq!(windows[0].bytes(), [1, 0, 0, 0, 0, 0, 0, 0]);
    // Every thread needs seven, and one for itself.
    let mut windows = [Window::new(OUT, vec![1, 0, 0, 0, 1, 0, 0, 0], true)];
    let slices =
        (1..100).find(|_| count.run(&mut progress, &[OUT], &mut windows, 3).unwrap()).unwrap();
    assert!((9..14).contains(&slices), "{slices}");
    assert_eq!(windows[0].bytes(), [4, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(count.run(&mut progress, &[OUT], &mut windows, 0), Ok(true));
}

/// A thread takes time also where it has nothing to do, so that no launch takes for ever at once.
#[test]
fn a_thread_without_statements_takes_one() {
    let empty = &parse(&format!("{HEADER}.visible .entry k() {{ }}"), 53, 10020).unwrap()[0];
    let mut progress =
        empty.start(Grid { blocks: [0x7FFF_FFFF, 0xFFFF, 0xFFFF], threads: [1024, 1, 1] });
    assert_eq!(empty.run(&mut progress, &[], &mut [], 1000), Ok(false));
    let mut progress = empty.start(Grid { blocks: [5, 1, 2], threads: [1, 3, 1] });
    assert_eq!(
        [29, 0, 1].map(|max| empty.run(&mut progress, &[], &mut [], max)),
        [Ok(false), Ok(false), Ok(true)]
    );
    assert_eq!(
        empty.run(&mut empty.start(Grid { blocks: [1, 0, 1], ..ONE }), &[], &mut [], 0),
        Ok(true)
    );
}

#[test]
fn every_thread_runs_once_and_knows_its_place() {
    let dimension = |blocks: &str, block: &str| {
        format!("mov.u32 %r4, {blocks}; mov.u32 %r5, {block}; mad.lo.s32 %r3, %r3, %r4, %r5;")
    };
    let place = [("%nctaid", "%ctaid"), ("%ntid", "%tid")]
        .map(|(of, at)| {
            ["z", "y", "x"]
                .map(|name| dimension(&format!("{of}.{name}"), &format!("{at}.{name}")))
                .concat()
        })
        .concat();
    let place = &format!(
        "mov.u32 %r3, 0; {place}
        cvt.u64.u32 %rd3, %r3; add.s64 %rd3, %rd3, %rd0; ld.global.u8 %r4, [%rd3]; add.u32 %r4, %r4, %r3; st.global.u8 [%rd3], %r4;"
    );
    for (blocks, threads) in [
        ([1, 1, 1], [64, 1, 1]),
        ([2, 2, 2], [2, 2, 2]),
        ([1, 4, 1], [1, 4, 4]),
        ([3, 1, 5], [1, 2, 2]),
    ] {
        let bytes = run(place, [0, 0], Grid { blocks, threads }).unwrap();
        let count: u32 = blocks.iter().chain(&threads).product();
        let expected: Vec<u8> = (0..64)
            .map(|at| 0xEE_u8.wrapping_add(if u32::from(at) < count { at } else { 0 }))
            .collect();
        assert_eq!(bytes, expected, "{blocks:?} {threads:?}");
    }
}

#[test]
fn what_is_no_ptx_is_refused_with_its_line() {
    let body = |body: &str| {
        format!(
            "{HEADER}.visible .entry k(.param .u64 a) {{ .reg .b32 %r<3>; .reg .b64 %rd<2>;\n{body} }}"
        )
    };
    for (text, expected) in [
        (
            String::new(),
            "line 1; fatal   : Missing .version directive at start of file 'application ptx input'",
        ),
        (
            ".version 6.0".to_owned(),
            "line 1; fatal   : Missing .target directive at start of file 'application ptx input'",
        ),
        (HEADER.replace("64", "32"), "line 3; fatal   : Parsing error near '32': syntax error"),
        (
            HEADER.replace("53", "90"),
            "SM version specified by .target is higher than default SM version assumed",
        ),
        (
            format!("{HEADER}.visible .entry k"),
            "line 4; fatal   : Parsing error near '': syntax error",
        ),
        (
            format!("{HEADER}.global .u32 x;"),
            "line 4; fatal   : Parsing error near '.global': syntax error",
        ),
        (
            body("frob.u64 %rd1, 1;"),
            "line 5; error   : Not a name of any known instruction: 'frob.u64'",
        ),
        (body("st.global.u64 [%rd2], 1;"), "line 5; error   : Unknown symbol '%rd2'"),
        (body("ld.param.u64 %rd1, [b];"), "line 5; error   : Unknown symbol 'b'"),
        (body("ret;\nbra L;"), "line 6; error   : Unknown symbol 'L'"),
        (body("L: ret;\nL:"), "line 6; error   : Duplicate definition of label 'L'"),
        (body("ret"), "line 5; fatal   : Parsing error near '}': syntax error"),
        (
            body(".reg .b32 %x<65532>;"),
            "line 5; error   : 65537 registers: there is room for 65536",
        ),
        // Octal.
        (body("mov.u32 %r0, 010;"), "line 5; fatal   : Parsing error near '010': syntax error"),
    ] {
        let Refused { log, code } = parse(&text, 87, 12040).unwrap_err();
        assert!(log.ends_with(expected) && code == code::INVALID_PTX, "{text}: {log}");
    }
}

/// Each driver takes the ISA that came with it, and no newer one.
#[test]
fn an_isa_newer_than_the_driver_is_refused() {
    for (driver, newest) in [
        (9_000, "6.0"),
        (10_020, "6.5"),
        (11_080, "7.8"),
        (12_040, "8.4"),
        (12_080, "8.7"),
        (13_000, "9.0"),
    ] {
        let taken = |isa: &str| {
            parse(&HEADER.replace("6.0", isa), 87, driver).map_err(|refused| refused.code).is_ok()
        };
        let (major, minor) = newest.split_once('.').unwrap();
        let newer = format!("{major}.{}", minor.parse::<u32>().unwrap() + 1);
        assert_eq!([taken(newest), taken(&newer)], [true, false], "{driver}");
    }
}
