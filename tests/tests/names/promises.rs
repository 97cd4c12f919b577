//! `docs/promises.md`: each rule of `Driver` and of memory, and where it was seen to hold. The
//! rules are read where they are written, and each test that is named exists.

use std::{env, fmt::Write as _, fs, path::Path};

const HEAD: &str = "# Coverage of the rules

After this page you know where each promise of the runtime was seen to hold, and where it was not.

- **Simulated board:** `cargo test --workspace`, with models of the devices. It has two memories for
  each block, so that a missing sync shows. Rules that need no device are in this column, too.
- **RTL:** `cargo test -p contigo-rtl`. Verilator runs the Verilog of a core on the same board.
- **RTL or a model under a kernel:** the lab's boards `virt-pcie`, with a model beside QEMU, and
  `virt-rtl`, `virt-rtl-gate` and `virt-rtl-armv7`, with Verilog there. A real kernel drives it by
  VFIO, by UIO, and by the module `contigo`.
- **QEMU's own engines:** the lab's other boards. The names are those of its rows.
- **Silicon:** nothing yet. No board with an FPGA was at hand.

A cell that is empty says that no test has shown the rule there. QEMU has no caches, so rules of
caches have none there. A name is a test or a check of the file that it leads to, and
`tests/tests/names/promises.rs` keeps that true. The rules are shortened; the
documentation of `Driver` has them whole.
";

/// A test's file and its name.
type Seen = &'static [(&'static str, &'static str)];
/// The cells of a rule: simulated board, RTL, under a kernel, QEMU's engines.
type Cells = [Seen; 4];

const MODEL: &str = "tests/tests/model/main.rs";
const HAND_OVER: &str = "tests/tests/hand_over.rs";
const CACHES: &str = "testkit/src/conformance/caches.rs";
const SUITE: &str = "tests/tests/suite/ap_ctrl.rs";
const RTL_SUITE: &str = "rtl/tests/gemm8/suite.rs";
const RTL_NNGEN: &str = "rtl/tests/cores/nngen.rs";
const RTL_GATE: &str = "rtl/tests/cores/gate.rs";
const RTL_PROMISES: &str = "rtl/tests/gemm8/promises.rs";
const PANICS: &str = "tests/tests/camera/panics.rs";
const RTL_ABORTS: &str = "rtl/tests/gemm8/aborts.rs";
const CARD: &str = "tests/src/bin/contigo-board-tests/vfio/litepcie.rs";
const GEMM8: &str = "tests/src/bin/contigo-board-tests/vfio/gemm8.rs";
const GATED: &str = "tests/src/bin/contigo-board-tests/gemm8/gated.rs";
const EDU: &str = "tests/src/bin/contigo-board-tests/vfio/mod.rs";
const PLAN: &str = "tests/src/bin/contigo-board-tests/plan.rs";
const GUARD: &str = "tests/src/bin/contigo-board-tests/checks/guard/mod.rs";

/// The rules of `Driver`, from the first.
const DRIVER: [Cells; 12] = [
    [
        &[(HAND_OVER, "an_engine_that_overruns_or_stops_too_late_is_seen"), (SUITE, "hs")],
        &[(RTL_SUITE, "in_hostile_memory"), (RTL_ABORTS, "an_abort_ends_in_silence")],
        &[(CARD, "loopback-by-interrupt"), (GEMM8, "products-by-interrupt")],
        &[(EDU, "copies-msi")],
    ],
    [
        &[
            (MODEL, "drivers_that_break_a_rule_are_caught_within_50_seeds"),
            ("tests/tests/ap_ctrl/gated.rs", "a_kernel_that_hangs_or_runs_wild_stops"),
        ],
        &[(RTL_NNGEN, "behind_the_gate_nothing_is_written_after_a_stop"), (RTL_GATE, "with_the_gate_no_write_comes_after_the_stop")],
        &[(GEMM8, "timeout-stops"), (GATED, "guard-timeout-stops")],
        &[(PLAN, "timeout-stops")],
    ],
    [&[(MODEL, "faults_happen_often")], &[("rtl/tests/gemm8/products.rs", "products_are_the_models")], &[], &[]],
    [
        &[("tests/tests/pl330/refused.rs", "what_cannot_be_copied_is_refused_before_anything_is_touched")],
        &[(RTL_PROMISES, "a_check_starts_nothing")],
        &[],
        &[],
    ],
    [
        &[(HAND_OVER, "accesses_to_bytes_that_were_not_handed_over_are_counted")],
        &[(RTL_SUITE, "in_calm_memory")],
        &[(CARD, "unmapped-is-not-written"), (GEMM8, "unmapped-is-not-written")],
        &[(EDU, "physical-address-faults")],
    ],
    [&[("tests/tests/closed_holes.rs", "a_device_has_one_driver")], &[], &[], &[(PLAN, "uio-in-use-refused"), (GUARD, "guard-exclusive")]],
    [
        &[
            ("tests/tests/guard/stops.rs", "a_program_stops_a_channel_that_never_ends"),
            ("tests/tests/ap_ctrl/gated.rs", "its_stop_program_stops_a_wild_kernel"),
        ],
        &[(RTL_PROMISES, "its_stop_program_stops_it_at_any_moment")],
        &[(GATED, "guard-killed-while-it-writes")],
        &[(PLAN, "killed-program-stopped")],
    ],
    [
        &[("tests/tests/closed_holes.rs", "stopping_takes_the_time_it_says")],
        &[(RTL_ABORTS, "an_abort_ends_in_silence")],
        &[(CARD, "unmapped-is-not-read"), (GEMM8, "timeout-stops")],
        &[(PLAN, "timeout-stops")],
    ],
    [
        &[
            (PANICS, "the_slots_of_a_driver_that_panicked_stay_the_devices"),
            (PANICS, "a_wait_that_panics_gives_no_byte_back_before_a_stop"),
        ],
        &[],
        &[],
        &[],
    ],
    [&[(SUITE, "chain"), (MODEL, "nothing_goes_wrong")], &[(RTL_SUITE, "in_hostile_memory")], &[(CARD, "sent-and-received")], &[]],
    [&[(MODEL, "faults_happen_often")], &[], &[], &[]],
    [&[(MODEL, "nothing_goes_wrong")], &[(RTL_SUITE, "in_calm_memory")], &[], &[]],
];

/// The rules of memory, as ARCHITECTURE.md has them.
const MEMORY: [(&str, Cells); 11] = [
    (
        "No reference to memory that a device can touch",
        [&[("tests/tests/compile_fail.rs", "each_file_is_refused_for_its_own_reason")], &[], &[], &[]],
    ),
    (
        "One way to a device through the caches",
        [
            &[(CACHES, "the_device_sees_what_the_cpu_wrote"), (CACHES, "the_cpu_sees_what_the_device_wrote")],
            &[(RTL_NNGEN, "every_digit_is_numpys_bit_for_bit"), (RTL_SUITE, "in_hostile_memory")],
            &[],
            &[],
        ],
    ),
    (
        "Address and length of a device's buffer belong together",
        [&[(HAND_OVER, "address_and_length_stay_together_along_a_chain")], &[], &[], &[]],
    ),
    (
        "No look at an output before the look that saw its end",
        [&[("runtime/src/linux/barrier_tests.rs", "every_way_back_has_a_barrier")], &[], &[], &[]],
    ),
    ("A device touches only bytes that were handed over to it", DRIVER[0]),
    (
        "Leak, never free, what a device may own",
        [&[(MODEL, "devices_get_stuck")], &[], &[(GATED, "guard-killed-unarmed-is-kept")], &[(GUARD, "guard-kept")]],
    ),
    (
        "Safety never rests on `Drop`",
        [
            &[
                ("testkit/src/conformance/memory.rs", "what_was_forgotten_stays"),
                ("testkit/src/conformance/jobs.rs", "a_forgotten_job_keeps_its_memory"),
            ],
            &[],
            &[],
            &[],
        ],
    ),
    (
        "Whole lines, or refused",
        [
            &[(CACHES, "every_cut_through_a_line_keeps_the_rest"), (HAND_OVER, "half_a_line_is_lent_to_be_read_and_not_to_be_written")],
            &[],
            &[],
            &[],
        ],
    ),
    (
        "A device's number is compared before it is a length; it is never an index or an address",
        [&[("tests/tests/own_queue/faults.rs", "a_completion_that_lies_stops_the_device_and_loses_no_buffer")], &[], &[], &[]],
    ),
    (
        "A child of fork is no second owner",
        [&[("tests/tests/fork.rs", "memory_stays_with_the_parent")], &[], &[], &[(GUARD, "guard-not-inherited")]],
    ),
    (
        "No system call on a polled job, except for cache maintenance in the kernel",
        [&[("tests/tests/no_syscalls.rs", "none_on_simulated_memory"), ("tests/tests/no_syscalls.rs", "none_on_a_guard")], &[], &[], &[]],
    ),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The beginning of each rule that `Driver` asks of who implements it.
fn rules_of_driver() -> Vec<String> {
    let source = read("runtime/src/job/driver.rs");
    let (_, after) = source.split_once("/// # Implementation safety\n").unwrap();
    let (rules, _) = after.split_once("pub unsafe trait Driver").unwrap();
    let mut found: Vec<String> = Vec::new();
    for line in rules.lines().map(|line| line.trim_start_matches("///")) {
        let begins = format!(" {}. ", found.len() + 1);
        if let Some(text) = line.strip_prefix(begins.as_str()) {
            found.push(text.to_owned());
        } else if let (Some(more), Some(rule)) = (line.strip_prefix("    "), found.last_mut()) {
            rule.push(' ');
            rule.push_str(more);
        }
    }
    // The second sentence of these two is a rule of its own.
    let short = |(index, rule): (usize, &String)| {
        let sentences = if matches!(index + 1, 2 | 7) { 2 } else { 1 };
        rule.trim_end_matches('.').split(". ").take(sentences).collect::<Vec<_>>().join(". ")
    };
    found.iter().enumerate().map(short).map(|rule| rule.replace("[`", "`").replace("`]", "`")).collect()
}

fn row(page: &mut String, rule: &str, cells: Cells) {
    write!(page, "| {rule} |").unwrap();
    for seen in cells {
        let mut names = Vec::new();
        for (file, name) in seen {
            let text = read(file);
            let is_there =
                text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<")) || text.contains(&format!("\"{name}\""));
            assert!(is_there, "{file} has no {name}, in which was seen: {rule}");
            names.push(format!("[`{name}`](../{file})"));
        }
        write!(page, " {} |", names.join(", ")).unwrap();
    }
    page.push_str(" |\n");
}

fn table(page: &mut String, title: &str) {
    write!(page, "\n## {title}\n\n").unwrap();
    page.push_str(
        "| rule | simulated board | RTL | RTL or a model under a kernel | QEMU's own engines | silicon |\n|---|---|---|---|---|---|\n",
    );
}

#[test]
fn the_page_of_promises_is_up_to_date() {
    let (rules, architecture, mut page) = (rules_of_driver(), read("ARCHITECTURE.md"), String::from(HEAD));
    assert_eq!(rules.len(), DRIVER.len(), "{rules:#?}");
    table(&mut page, "Promises of a driver");
    for (number, (rule, cells)) in (1..).zip(rules.iter().zip(DRIVER)) {
        row(&mut page, &format!("{number}. {rule}"), cells);
    }
    table(&mut page, "Memory");
    for (rule, cells) in MEMORY {
        assert!(architecture.contains(&format!("\n| {rule} |")), "ARCHITECTURE.md has no such rule: {rule}");
        row(&mut page, rule, cells);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/promises.md");
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(fs::read_to_string(&path).is_ok_and(|old| old == page), "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-tests --test names");
}
