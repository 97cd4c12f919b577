//! The ISA manual's words about each instruction, at its borders.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_sign_loss,
    reason = "a test that panics has failed, which is its purpose; negative numbers as their bits"
)]

use super::{Grid, Window, parse};
use crate::code;

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
        ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
        cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2;
        {body} }}"
    );
    let entries = parse(&text, 87).unwrap();
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
    let cases: [(&str, [u64; 2], u64); 36] = [
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
        (
            "setp.ne.s32 %p1, %r1, 1; setp.eq.s32 %p2, %r2, 1; and.pred %p0, %p1, %p2; \
             selp.b32 %r3, 1, 0, %p0",
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
fn branches_and_guards_work_both_ways() {
    let count = "mov.u32 %r3, 0; $again: add.u32 %r3, %r3, 2; add.u32 %r1, %r1, -1;
                 setp.ne.u32 %p1, %r1, 0; @%p1 bra $again; bra.uni end;
                 mov.u32 %r3, 9; end: @!%p1 add.u32 %r3, %r3, 100; @%p1 ret;";
    assert_eq!(narrow(count, [5, 0]), 110);
}

#[test]
fn memory_is_little_endian_and_bounded() {
    let bytes = run(
        "mov.u32 %r3, 4278255873; st.global.u8 [%rd0+3], %r3;
             st.global.v4.u32 [%rd0+16], {%r3, %r1, 7, %r2};",
        [1, 2],
        ONE,
    )
    .unwrap();
    assert_eq!(bytes[..8], [0xEE, 0xEE, 0xEE, 1, 0xEE, 0xEE, 0xEE, 0xEE]);
    assert_eq!(bytes[16..32], [1, 1, 1, 0xFF, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0]);
    let signed = "st.global.u64 [%rd0], %rd1; ld.global.s8 %r3, [%rd0+1];";
    assert_eq!(narrow(signed, [0x8000, 0]), 0xFFFF_FF80);
    let pair = "st.global.u64 [%rd0+8], %rd1; ld.global.nc.v2.u32 {%r1, %r3}, [%rd0+8];
                add.u32 %r3, %r3, %r1;";
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

/// An input is not written, nor a word that only begins in an output. What was written is known.
#[test]
fn only_what_is_writable_is_written_and_known() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 at) {{ .reg .b64 %rd<2>; ld.param.u64 %rd0, [at];
        st.global.u8 [%rd0+9], 1; st.global.u16 [%rd0+4], 2; }}"
    );
    let entries = parse(&text, 53).unwrap();
    let written: &[u8] = &[2, 0, 0xEE, 0xEE, 0xEE, 1];
    for (writable, len, expected) in [
        (false, 16, Err(code::ILLEGAL_ADDRESS)),
        (true, 9, Err(code::ILLEGAL_ADDRESS)),
        (true, 16, Ok((OUT + 4, written))),
    ] {
        let mut windows = [Window::new(OUT, vec![0xEE; len], writable)];
        let ran = entries[0].run(&mut entries[0].start(ONE), &[OUT], &mut windows, 10);
        assert_eq!(ran.map(|_| windows[0].written()), expected);
    }
}

#[test]
fn a_kernel_goes_on_where_it_was() {
    let mut windows = [Window::new(OUT, vec![0; 8], true)];
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 at) {{
        .reg .pred %p<1>; .reg .b32 %r<2>; .reg .b64 %rd<1>; ld.param.u64 %rd0, [at];
        ld.global.u32 %r0, [%rd0]; add.u32 %r0, %r0, 1; st.global.u32 [%rd0], %r0;
        again: ld.volatile.global.u32 %r1, [%rd0+4]; setp.eq.u32 %p0, %r1, 0; @%p0 bra again; }}"
    );
    let count = &parse(&text, 53).unwrap()[0];
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
    let empty = &parse(&format!("{HEADER}.visible .entry k() {{ }}"), 53).unwrap()[0];
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
fn what_is_no_ptx_is_refused_with_its_line() {
    let body = |body: &str| {
        format!(
            "{HEADER}.visible .entry k(.param .u64 a) {{ .reg .b32 %r<3>; .reg .b64 %rd<2>;\n\
             {body} }}"
        )
    };
    for (text, line, near) in [
        (String::new(), 1, ""),
        (".version 6.0".to_owned(), 1, ""),
        (HEADER.replace("64", "32"), 3, "32"),
        (HEADER.replace("53", "90"), 2, "sm_90"),
        (format!("{HEADER}.global .u32 x;"), 4, ".global"),
        (body("frob.u64 %rd1, 1;"), 5, "frob.u64"),
        (body("st.global.u64 [%rd2], 1;"), 5, "%rd2"),
        (body("ld.param.u64 %rd1, [b];"), 5, "b"),
        (body("ld.param.u32 %r1, [a];"), 5, "a"),
        (body("ret;\nbra L;"), 6, "}"),
        (body("L: ret;\nL:"), 6, ":"),
        (body("ret"), 5, "}"),
        (body(".reg .b32 %x<65532>;"), 5, "65532"),
        // Octal.
        (body("mov.u32 %r0, 010;"), 5, "010"),
    ] {
        let expected = format!("line {line}; fatal   : Parsing error near '{near}': syntax error");
        let log = parse(&text, 87).unwrap_err();
        assert!(log.starts_with("ptxas") && log.ends_with(&expected), "{text}: {log}");
    }
}
