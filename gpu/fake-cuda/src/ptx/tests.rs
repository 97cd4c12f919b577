//! Faults, slices of a launch, and refused text. The results of each instruction are tested by
//! `gemm8_cuda`, which executes the committed PTX.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use super::{Window, parse};
use crate::{Launch, code};

const HEADER: &str = ".version 6.0\n.target sm_53\n.address_size 64\n";
const ONE: Launch = Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0 };
/// Where the output is, unlike any number that a kernel computes.
const OUT: u64 = 0x7000_0000_0000;

/// Runs one thread of these statements, and returns the first word of its 64 bytes of memory, which
/// are at `%rd0`. Other registers are 0.
fn run(body: &str) -> Result<u32, i32> {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .b32 %r<5>; .reg .b64 %rd<4>; ld.param.u64 %rd0, [out];
        mov.u32 %r1, 0; mov.u32 %r2, 0; {body} }}"
    );
    let entry = &parse(&text, 87).unwrap()[0];
    let mut windows = [Window::new(OUT, vec![0xEE; 64], true)];
    let ended = entry.run(&mut entry.start(ONE), &[OUT], &mut windows, 10_000)?;
    assert!(ended, "{body}");
    Ok(u32::from_le_bytes(*windows[0].bytes().first_chunk().unwrap()))
}

/// No kernel of gemm8's shifts by so much.
#[test]
fn amounts_are_clamped_to_the_width() {
    for (op, expected) in [
        ("shl.b32 %r2, %r1, 31", 1 << 31),
        ("shl.b32 %r2, %r1, 32", 0),
        ("shr.u32 %r2, %r1, 31", 1),
        ("shr.u32 %r2, %r1, 40", 0),
        ("shr.s32 %r2, %r1, 40", u32::MAX),
        ("bfe.u32 %r2, %r1, 28, 40", 15),
        ("bfe.u32 %r2, %r1, 40, 4", 0),
    ] {
        let body = format!("mov.u32 %r1, 4294967295; {op}; st.global.u32 [%rd0], %r2;");
        assert_eq!(run(&body), Ok(expected), "{op}");
    }
}

#[test]
fn wrong_accesses_and_divisions_are_faults() {
    for (body, expected) in [
        ("st.global.u32 [%rd0+62], %r1;", code::MISALIGNED_ADDRESS),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", code::MISALIGNED_ADDRESS),
        ("st.global.u8 [%rd0+64], %r1;", code::ILLEGAL_ADDRESS),
        ("ld.global.u8 %r1, [%rd0+-1];", code::ILLEGAL_ADDRESS),
        ("mov.u64 %rd3, 0; ld.global.u64 %rd3, [%rd3];", code::ILLEGAL_ADDRESS),
        // Not specified, so nothing may rely on it.
        ("div.u32 %r3, %r1, %r2;", code::LAUNCH_FAILED),
    ] {
        assert_eq!(run(body), Err(expected), "{body}");
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
    let mut progress = count.start(Launch { grid: [2, 1, 1], block: [1, 2, 1], ..ONE });
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
        empty.start(Launch { grid: [0x7FFF_FFFF, 0xFFFF, 0xFFFF], block: [1024, 1, 1], ..ONE });
    assert_eq!(empty.run(&mut progress, &[], &mut [], 1000), Ok(false));
    let mut progress = empty.start(Launch { grid: [5, 1, 2], block: [1, 3, 1], ..ONE });
    assert_eq!(
        [29, 0, 1].map(|max| empty.run(&mut progress, &[], &mut [], max)),
        [Ok(false), Ok(false), Ok(true)]
    );
    assert_eq!(
        empty.run(&mut empty.start(Launch { grid: [1, 0, 1], ..ONE }), &[], &mut [], 0),
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
